//! What a push brings: whether it is whole, and that all of it counts or
//! nothing.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use tidegate_git::{GitError, Moved, ObjectId, Program, Received, RefUpdate, Repository, TreeError, Unpacked};

const BYTES_MAX: u64 = 64 << 20;

/// A bare repository `r.git`, and `w`, from which things are pushed to it.
struct Site {
    dir: tempfile::TempDir,
    repository: Repository,
}

impl Site {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_owned();
        let program = Program { git: "git".into(), search_path: std::env::var_os("PATH").unwrap(), home };
        let repository = Repository::new(program, dir.path().join("r.git"));
        repository.init("main").await.unwrap();
        let site = Self { dir, repository };
        site.git("git init -q -b main w");
        site
    }

    /// `main` has one commit, and `w` another on top of it.
    async fn with_a_change() -> Self {
        let site = Self::new().await;
        site.git("cd w; mkdir -p b/c; echo 1 > a; echo 1 > b/c/d; echo 1 > b/e; git add .; git commit -qm 1");
        site.git("cd w; git push -q ../r.git HEAD:main; echo 2 > b/c/d; ln -s a l; git add .; git commit -qm 2");
        site
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-ec", script]).current_dir(self.dir.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.dir.path());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Ada").env(format!("GIT_{role}_EMAIL"), "ada@example.com");
        }
        command
    }

    fn git(&self, script: &str) -> String {
        String::from_utf8(self.fed(script, b"")).unwrap().trim().to_owned()
    }

    fn fed(&self, script: &str, input: &[u8]) -> Vec<u8> {
        let mut command = self.command(script);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
        let feed = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &input));
        let output = child.wait_with_output().unwrap();
        let _ = feed.join().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn id(&self, what: &str) -> ObjectId {
        ObjectId::parse(&self.git(&format!("cd w; git rev-parse {what}"))).unwrap()
    }

    /// What `w` has and `not` has not: commits, folders and files.
    fn objects(&self, tip: &str, not: &str) -> Vec<String> {
        let listed = self.git(&format!("cd w; git rev-list --objects --no-object-names {tip} --not {not}"));
        listed.lines().map(str::to_owned).collect()
    }

    /// A pack of exactly these objects.
    fn pack(&self, objects: &[String]) -> Vec<u8> {
        self.fed("cd w; git pack-objects -q --stdout", objects.join("\n").as_bytes())
    }

    async fn unpack(&self, pack: &[u8]) -> Unpacked {
        let mut unpacking = self.repository.receive(BYTES_MAX).unwrap();
        unpacking.write(pack).await;
        unpacking.finish().await.unwrap()
    }

    async fn receive(&self, pack: &[u8]) -> Received {
        match self.unpack(pack).await {
            Unpacked::Good(received) => received,
            Unpacked::Bad(lines) => panic!("{lines:?}"),
        }
    }

    /// What is wrong with a push of `objects` that makes `name` the head of `w`.
    async fn broken(&self, objects: &[String], name: &str, tip: &str) -> Vec<String> {
        let received = self.receive(&self.pack(objects)).await;
        received.broken(vec![(name.to_owned(), self.id(tip))]).await.unwrap()
    }

    fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.repository.dir().join("objects")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("incoming-")).collect()
    }

    fn has(&self, id: &str) -> bool {
        let found = self.command(&format!("git -C r.git cat-file -e {id} 2>/dev/null")).status().unwrap();
        found.success()
    }
}

#[tokio::test]
async fn a_push_that_lacks_any_of_its_objects_is_broken() {
    let site = Site::with_a_change().await;
    let all = site.objects("HEAD", "HEAD~1");
    // The commit, three folders, a file and a link.
    assert_eq!(all.len(), 6);
    assert_eq!(site.broken(&all, "refs/heads/main", "HEAD").await, [""; 0]);
    for lacking in &all {
        let rest: Vec<String> = all.iter().filter(|id| *id != lacking).cloned().collect();
        let told = site.broken(&rest, "refs/heads/main", "HEAD").await;
        assert!(told.len() == 1 && told[0].contains(lacking), "without {lacking}: {told:?}");
        assert!(told[0].contains("missing necessary objects"), "{told:?}");
    }
    assert!(site.left().is_empty() && !site.has(&all[0]), "nothing of it is here");
}

#[tokio::test]
async fn what_no_ref_leads_to_must_be_whole_too() {
    let site = Site::with_a_change().await;
    let all = site.objects("HEAD", "HEAD~1");
    site.git("cd w; git checkout -qb junk; echo 9 > x; git add .; git commit -qm junk");
    let mut more = site.objects("junk", "main");
    assert_eq!(more.len(), 3);
    more.extend(all.iter().cloned());
    assert_eq!(site.broken(&more, "refs/heads/main", "main").await, [""; 0]);
    let file = site.id("junk:x").to_string();
    more.retain(|id| *id != file);
    let told = site.broken(&more, "refs/heads/main", "main").await;
    assert!(told.len() == 1 && told[0].contains(&file), "{told:?}");
}

/// The same id, taken for another sort of object.
#[tokio::test]
async fn what_is_taken_for_something_else() {
    let site = Site::with_a_change().await;
    let (file, folder) = (site.id("HEAD:a"), site.id("HEAD:b"));
    for (mode, id, expected) in [
        ("100644", &folder, format!("takes {folder} for a blob, but it is a tree")),
        ("40000", &file, format!("takes {file} for a tree, but it is a blob")),
    ] {
        let id = (0..20).map(|at| u8::from_str_radix(&id.as_str()[2 * at..2 * at + 2], 16).unwrap());
        let entry: Vec<u8> = format!("{mode} x\0").into_bytes().into_iter().chain(id).collect();
        let tree = site.fed("cd w; git hash-object -t tree -w --stdin", &entry);
        let tree = String::from_utf8(tree).unwrap().trim().to_owned();
        site.git(&format!("cd w; git update-ref refs/heads/odd $(git commit-tree -m odd {tree})"));
        let mut objects = vec![site.id("odd").to_string(), tree];
        objects.extend(site.objects("HEAD", "HEAD~1"));
        let told = site.broken(&objects, "refs/heads/odd", "odd").await;
        assert!(told.len() == 1 && told[0].contains(&expected), "{told:?}");
    }
}

#[tokio::test]
async fn tips() {
    let site = Site::with_a_change().await;
    let all = site.objects("HEAD", "HEAD~1");
    let told = site.broken(&all, "refs/heads/main", "HEAD:b").await;
    assert!(told.len() == 1 && told[0].contains("is a tree and no commit"), "{told:?}");
    assert_eq!(site.broken(&all, "refs/tags/b", "HEAD:b").await, [""; 0], "a tag may be of anything");
    site.git("cd w; git tag -a -m tag v1 HEAD");
    let told = site.broken(&all, "refs/tags/v1", "v1").await;
    assert!(told.len() == 1 && told[0].contains("does not bring"), "{told:?}");
    let tag = vec![site.id("v1").to_string()];
    let told = site.broken(&tag, "refs/tags/v1", "v1").await;
    assert!(told.len() == 1 && told[0].contains(&site.id("HEAD").to_string()), "{told:?}");
    // It says of its target what is not true; git looks only at what it is sent.
    let lie = format!("object {}\ntype tree\ntag v2\ntagger a <a@example.com> 1 +0000\n\nlie\n", site.id("HEAD~1"));
    let lie =
        String::from_utf8(site.fed("cd w; git hash-object -t tag -w --literally --stdin", lie.as_bytes())).unwrap();
    let told = site.broken(&[lie.trim().to_owned()], "refs/tags/v2", lie.trim()).await;
    assert!(told.len() == 1 && told[0].contains("for a tree, but it is a commit"), "{told:?}");
    // What is here already needs no pack.
    assert_eq!(site.broken(&[], "refs/heads/other", "HEAD~1").await, [""; 0]);
    // Of a thousand that lack, some are told.
    let absent = ObjectId::parse(&"1".repeat(40)).unwrap();
    let many = (0..1_000).map(|at| (format!("refs/heads/{at}"), absent.clone())).collect();
    assert_eq!(site.receive(&site.pack(&all)).await.broken(many).await.unwrap().len(), 10);
    // Where the pusher's history ends is not where ours does.
    let site = Site::new().await;
    site.git("cd w; for n in 1 2 3; do echo $n > a; git add .; git commit -qm $n; done");
    let newest = site.objects("HEAD", "HEAD~1");
    let told = site.broken(&newest, "refs/heads/main", "HEAD").await;
    assert!(told.len() == 1 && told[0].contains(&site.id("HEAD~1").to_string()), "{told:?}");
}

#[tokio::test]
async fn all_refs_move_or_none() {
    let site = Site::with_a_change().await;
    let (first, second) = (site.id("HEAD~1"), site.id("HEAD"));
    let received = site.receive(&site.pack(&site.objects("HEAD", "HEAD~1"))).await;
    received.keep().await.unwrap();
    assert!(site.has(second.as_str()) && site.left().is_empty());
    let update = |name: &str, old: Option<&ObjectId>, new: Option<&ObjectId>| RefUpdate {
        name: format!("refs/heads/{name}"),
        old: old.cloned(),
        new: new.cloned(),
    };
    let good = update("main", Some(&first), Some(&second));
    for (stale, why) in [
        (update("other", Some(&first), Some(&second)), "it is not there"),
        (update("other", Some(&first), None), "it is not there to delete"),
    ] {
        let moved = site.repository.move_refs(&[good.clone(), stale]).await.unwrap();
        assert_eq!(moved, Moved::Stale, "{why}");
    }
    let new = update("other", None, Some(&first));
    assert_eq!(site.repository.move_refs(std::slice::from_ref(&new)).await.unwrap(), Moved::Done);
    assert_eq!(site.repository.move_refs(&[good.clone(), new]).await.unwrap(), Moved::Stale, "it is there");
    for bad in ["other/below", "a..b", "x.lock"] {
        let moved = site.repository.move_refs(&[good.clone(), update(bad, None, Some(&first))]).await.unwrap();
        assert!(matches!(moved, Moved::Refused(_)), "{bad}: {moved:?}");
    }
    assert_eq!(site.repository.head("main").await.unwrap(), Some(first.clone()), "none of these moved it");
    let both = [good, update("other", Some(&first), None)];
    assert_eq!(site.repository.move_refs(&both).await.unwrap(), Moved::Done);
    assert_eq!(
        site.git("git -C r.git for-each-ref --format='%(refname) %(objectname)'"),
        format!("refs/heads/main {second}")
    );
}

/// More than git syncs one by one: all the same, all move or none.
#[tokio::test]
async fn many_refs_move_together() {
    let site = Site::with_a_change().await;
    let first = site.id("HEAD~1");
    let updates = |old: Option<&ObjectId>, new: Option<&ObjectId>| -> Vec<RefUpdate> {
        let name = |at| format!("refs/heads/many/{at}");
        (0..100).map(|at| RefUpdate { name: name(at), old: old.cloned(), new: new.cloned() }).collect()
    };
    let count = || site.git("git -C r.git for-each-ref refs/heads/many | wc -l");
    let create = updates(None, Some(&first));
    for (name, expected) in [("refs/heads/main", Moved::Stale), ("refs/heads/a..b", Moved::Refused(String::new()))] {
        let bad = RefUpdate { name: name.into(), old: None, new: Some(first.clone()) };
        let moved = site.repository.move_refs(&[create.clone(), vec![bad]].concat()).await.unwrap();
        assert_eq!(std::mem::discriminant(&moved), std::mem::discriminant(&expected), "{name}: {moved:?}");
        assert_eq!(count(), "0", "{name}");
    }
    assert_eq!(site.repository.move_refs(&create).await.unwrap(), Moved::Done);
    assert_eq!(count(), "100");
    assert_eq!(site.repository.move_refs(&create).await.unwrap(), Moved::Stale, "they are there");
    // Some of them are elsewhere by then.
    site.git("git -C r.git pack-refs --all");
    let mut delete = updates(Some(&first), None);
    delete.push(RefUpdate { name: "refs/heads/gone".into(), old: Some(first.clone()), new: None });
    assert_eq!(site.repository.move_refs(&delete).await.unwrap(), Moved::Stale, "one is not there to delete");
    assert_eq!(count(), "100");
    delete.pop();
    assert_eq!(site.repository.move_refs(&delete).await.unwrap(), Moved::Done);
    assert_eq!(count(), "0");
}

#[tokio::test]
async fn what_is_no_pack() {
    let site = Site::with_a_change().await;
    let pack = site.pack(&site.objects("HEAD", "HEAD~1"));
    for (what, bytes) in [("half", &pack[..pack.len() / 2]), ("nothing", &[]), ("garbage", b"PACKgarbage")] {
        let Unpacked::Bad(lines) = site.unpack(bytes).await else { panic!("{what} was taken") };
        assert!(!lines.is_empty(), "{what}");
    }
    let mut unpacking = site.repository.receive(100).unwrap();
    unpacking.write(&pack).await;
    let Unpacked::Bad(lines) = unpacking.finish().await.unwrap() else { panic!("too much was taken") };
    assert!(lines.iter().any(|line| line.contains("exceeds")), "{lines:?}");
    // The pusher vanishes.
    let mut unpacking = site.repository.receive(BYTES_MAX).unwrap();
    unpacking.write(&pack[..30]).await;
    drop(unpacking);
    assert!(site.left().is_empty());
}

/// Ten folders of ten folders, and so on: few objects, and ten thousand
/// million folders without a file. A push may bring them; whoever compares
/// them says no, and has not looked at each.
#[tokio::test]
async fn more_folders_than_there_is_time() {
    let site = Site::with_a_change().await;
    let mut inner = ObjectId::empty_tree().to_string();
    for _ in 0..10 {
        let entries: String = (0..10).map(|at| format!("040000 tree {inner}\t{at}\n")).collect();
        inner =
            String::from_utf8(site.fed("cd w; git mktree --missing", entries.as_bytes())).unwrap().trim().to_owned();
    }
    site.git(&format!(
        "cd w; git update-ref refs/heads/bomb $(git commit-tree -m bomb {inner}); git push -q ../r.git bomb"
    ));
    let error = site.repository.diff(&site.id("HEAD~1"), &site.id("bomb"), "").await.unwrap_err();
    assert!(matches!(error, GitError::Tree(TreeError::TooManyEntries { .. })), "{error}");
}

/// Git is killed while it holds its locks: the next move finds none.
#[tokio::test]
async fn locks_of_a_killed_git() {
    let site = Site::with_a_change().await;
    let first = site.id("HEAD~1");
    let program = site.dir.path().join("killed");
    std::fs::create_dir(&program).unwrap();
    let script = "#!/bin/sh\ntouch refs/heads/new.lock HEAD.lock packed-refs.lock\nkill -9 $$\n";
    std::fs::write(program.join("git"), script).unwrap();
    std::fs::set_permissions(program.join("git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let search_path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let program = Program { git: "git".into(), search_path: search_path.into(), home: site.dir.path().to_owned() };
    let killed = Repository::new(program, site.repository.dir().to_owned());
    let update = RefUpdate { name: "refs/heads/new".into(), old: None, new: Some(first) };
    killed.move_refs(std::slice::from_ref(&update)).await.unwrap_err();
    let locked = site.repository.move_refs(std::slice::from_ref(&update)).await.unwrap();
    assert!(matches!(locked, Moved::Refused(_)), "{locked:?}");
    site.repository.unlock(std::slice::from_ref(&update));
    assert_eq!(site.repository.move_refs(&[update]).await.unwrap(), Moved::Done);
}

#[tokio::test]
async fn packs_do_not_add_up() {
    let site = Site::with_a_change().await;
    let mut packs = Vec::new();
    for number in 0..40 {
        site.git(&format!("cd w; echo {number} > n; git add .; git commit -qm {number}"));
        let objects = site.objects("HEAD", if number == 0 { "HEAD~2" } else { "HEAD~1" });
        site.receive(&site.pack(&objects)).await.keep().await.unwrap();
        packs.push(site.repository.is_untidy().unwrap());
    }
    assert!(packs == [vec![false; 32], vec![true; 8]].concat(), "{packs:?}");
    // Nothing is lost, though no ref leads to it yet.
    site.repository.repack().await.unwrap();
    assert!(!site.repository.is_untidy().unwrap());
    let update =
        RefUpdate { name: "refs/heads/main".into(), old: Some(site.id("HEAD~41")), new: Some(site.id("HEAD")) };
    assert_eq!(site.repository.move_refs(&[update]).await.unwrap(), Moved::Done);
    site.git("git -C r.git fsck --full --strict");
}

/// A small generator of numbers, the same for a seed everywhere.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Commits with folders, copies, returns to old contents, and merges.
fn history(numbers: &mut Numbers, commits: usize) -> String {
    let mut text = String::new();
    for mark in 1..=commits {
        let person = format!("a <a@example.com> {} +0000", 1_700_000_000 + mark);
        write!(text, "commit refs/heads/c{mark}\nmark :{mark}\nauthor {person}\ncommitter {person}\ndata 1\nc\n")
            .unwrap();
        if mark > 1 {
            let parent = if numbers.below(3) == 0 { 1 + numbers.below(mark - 1) } else { mark - 1 };
            writeln!(text, "from :{parent}").unwrap();
            let other = 1 + numbers.below(mark - 1);
            if other != parent && numbers.below(3) == 0 {
                writeln!(text, "merge :{other}").unwrap();
            }
        }
        for _ in 0..=numbers.below(4) {
            let path = ["a", "b/c", "b/d", "b/e/f", "g/h/i", "g/h/j"][numbers.below(6)];
            if numbers.below(5) == 0 {
                writeln!(text, "D {}", path.split('/').next().unwrap()).unwrap();
            } else {
                let content = numbers.below(12).to_string();
                write!(text, "M 100644 inline {path}\ndata {}\n{content}\n", content.len()).unwrap();
            }
        }
    }
    text
}

fn seeds() -> std::ops::Range<u64> {
    0..12
}

/// Random histories of which some is here: all the rest is good, as git packs
/// it for a push; without any one object it is not.
#[tokio::test]
async fn random_histories() {
    for seed in seeds() {
        let mut numbers = Numbers(seed);
        let commits = 3 + numbers.below(8);
        let site = Site::new().await;
        site.fed("cd w; git fast-import --quiet", history(&mut numbers, commits).as_bytes());
        let (old, new) = (format!("c{}", 1 + numbers.below(commits - 1)), format!("c{commits}"));
        site.git(&format!("cd w; git push -q ../r.git {old}:main"));
        let objects = site.objects(&new, &old);
        let tip = vec![("refs/heads/new".to_owned(), site.id(&new))];
        if !objects.is_empty() {
            let lacking = objects[numbers.below(objects.len())].clone();
            let rest: Vec<String> = objects.iter().filter(|id| **id != lacking).cloned().collect();
            let told = site.receive(&site.pack(&rest)).await.broken(tip.clone()).await.unwrap();
            assert!(told.iter().any(|line| line.contains(&lacking)), "seed {seed}, without {lacking}: {told:?}");
        }
        let pack = site.fed(
            "cd w; git pack-objects -q --revs --thin --delta-base-offset --stdout",
            format!("{new}\n^{old}\n").as_bytes(),
        );
        let received = site.receive(&pack).await;
        assert_eq!(received.broken(tip).await.unwrap(), [""; 0], "seed {seed}");
        received.keep().await.unwrap();
        let update = RefUpdate { name: "refs/heads/new".into(), old: None, new: Some(site.id(&new)) };
        assert_eq!(site.repository.move_refs(&[update]).await.unwrap(), Moved::Done, "seed {seed}");
        site.git("git -C r.git fsck --full --strict --no-dangling");
        assert!(site.left().is_empty(), "seed {seed}");
    }
}

//! Packs that no git would make: what they cost is counted.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use gix_hash::ObjectId as Id;
use gix_object::{Kind, compute_hash};

use super::incoming::Unpacked;
use super::limits::Limits;
use super::rebuild::{Go, Rebuild, RebuildError};
use super::survey::{Survey, SurveyError};
use super::whole::Whole;
use crate::beside::{Patience, beside};
use crate::objects::HASH;
use crate::packing::{Packing, number};
use crate::program::Program;
use crate::repository::{ObjectId, Repository};

/// As deep as git goes.
const DEPTH_MAX: usize = 4_095;
const PLENTY: Limits = Limits { unpacked_bytes_max: u64::MAX, held_bytes_max: usize::MAX, steps_max: u64::MAX };

/// A tree of files that need not be there, in order.
fn tree(names: impl IntoIterator<Item = usize>) -> Vec<u8> {
    names.into_iter().flat_map(|name| [format!("100644 {name:07}\0").as_bytes(), &[7; 20]].concat()).collect()
}

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
        Self { dir, repository }
    }

    async fn unpack(&self, pack: &[u8], seconds_max: fn(u64) -> u64) -> Unpacked {
        let mut unpacking = self.repository.receive_within(1 << 30, seconds_max).unwrap();
        unpacking.write(pack).await;
        unpacking.finish().await.unwrap()
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.repository.dir()).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// As git stores it, whatever the objects say.
    fn file(&self, pack: &[u8]) -> PathBuf {
        let path = self.dir.path().join("one.pack");
        std::fs::write(&path, pack).unwrap();
        self.git(&["index-pack", path.to_str().unwrap()], b"");
        path
    }

    fn survey(&self, packing: &Packing) -> Survey {
        Survey::of(&self.file(&packing.pack())).unwrap()
    }
}

async fn patiently<R: Send + 'static>(work: impl FnOnce(&Patience) -> R + Send + 'static) -> R {
    beside(Duration::MAX, move |patience| Ok(work(&patience))).await.unwrap()
}

/// How often each object was made, and what it cost.
async fn rebuild(survey: Survey, limits: Limits) -> (HashMap<Id, usize>, u64, Result<(), RebuildError>) {
    patiently(move |patience| {
        let (mut made, mut rebuild) = (HashMap::new(), Rebuild::new(&survey, patience, limits));
        let ended = rebuild.each(|rebuilt| {
            let id = compute_hash(HASH, rebuilt.kind, rebuilt.content).unwrap();
            assert_eq!(survey.id(rebuilt.place), id, "it is what it should be");
            *made.entry(id).or_default() += 1;
            Go::On
        });
        (made, rebuild.bytes, ended)
    })
    .await
}

#[tokio::test]
async fn a_chain_may_be_as_deep_as_git_makes_it_and_no_deeper() {
    let site = Site::new().await;
    let chain = |depth: usize| {
        let mut packing = Packing::default();
        packing.whole(Kind::Blob, b"0");
        for at in 1..=depth {
            packing.anew(at - 1, at.to_string().as_bytes());
        }
        packing
    };
    assert!(matches!(site.unpack(&chain(DEPTH_MAX).pack(), |_| 100).await, Unpacked::Good(_)));
    let deeper = chain(DEPTH_MAX + 1);
    let Unpacked::Bad(lines) = site.unpack(&deeper.pack(), |_| 100).await else { panic!("it was taken") };
    let last = deeper.id(DEPTH_MAX + 1).to_string();
    assert!(lines.len() == 1 && lines[0].contains(&last) && lines[0].contains("git repack -adf"), "{lines:?}");
}

/// By what they are made from, in whatever order they come: at each depth the
/// cost is what the objects have.
#[tokio::test]
async fn each_folder_of_a_chain_is_made_once() {
    let site = Site::new().await;
    let mut packing = Packing::default();
    packing.whole(Kind::Tree, &tree([0]));
    for at in 1..=DEPTH_MAX {
        packing.anew(at - 1, &tree([at]));
    }
    let bytes = tree([0]).len() as u64;
    let (made, spent, ended) = rebuild(site.survey(&packing), PLENTY).await;
    assert_eq!(ended, Ok(()));
    assert!(made.len() == DEPTH_MAX + 1 && made.values().all(|times| *times == 1));
    assert_eq!(spent, bytes * (2 * DEPTH_MAX as u64 + 1), "each, and what it is made from");
}

/// A chain with a second folder at each of its links: not all of them are held
/// until the last is made.
#[tokio::test]
async fn few_folders_are_held_at_once() {
    const LINKS: usize = 500;
    let site = Site::new().await;
    let mut packing = Packing::default();
    let mut link = packing.whole(Kind::Tree, &tree([0]));
    for at in 1..LINKS {
        packing.anew(link, &tree([LINKS + at]));
        let next = packing.anew(link, &tree([at]));
        packing.anew(link, &tree([2 * LINKS + at]));
        link = next;
    }
    let bytes = tree([0]).len();
    let (made, _, ended) = rebuild(site.survey(&packing), Limits { held_bytes_max: 2 * bytes, ..PLENTY }).await;
    assert_eq!(ended, Ok(()));
    assert!(made.len() == packing.objects.len() && made.values().all(|times| *times == 1));
    let (_, _, ended) = rebuild(site.survey(&packing), Limits { held_bytes_max: bytes - 1, ..PLENTY }).await;
    assert!(matches!(ended, Err(RebuildError::TooLarge { .. })), "{ended:?}");
}

/// A thousand large folders of a few bytes each.
#[tokio::test]
async fn what_is_made_is_counted() {
    let site = Site::new().await;
    let mut packing = Packing::default();
    let base = packing.whole(Kind::Tree, &tree(0..10_000));
    for at in 0..1_000 {
        packing.longer(base, &tree([10_000 + at]));
    }
    let (pack, bytes_max) = (packing.pack(), 20 << 20);
    let (made, spent, ended) = rebuild(site.survey(&packing), Limits { unpacked_bytes_max: bytes_max, ..PLENTY }).await;
    let Err(RebuildError::TooMuch { id, .. }) = ended else { panic!("{ended:?}") };
    assert!(packing.objects.iter().any(|(kind, content, _)| compute_hash(HASH, *kind, content).unwrap() == id));
    let folder = packing.objects[base].1.len() as u64;
    assert!(spent > bytes_max && spent <= bytes_max + 3 * folder, "{spent}");
    assert!(made.len() < 100, "most are not made");
    assert!(pack.len() < 300 << 10, "{}", pack.len());
}

/// Git would need a minute for it. It is given a second.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn git_has_as_much_time_as_was_sent() {
    let site = Site::new().await;
    let mut packing = Packing::default();
    let base = packing.whole(Kind::Blob, &vec![0; 64 << 20]);
    for at in 0..200u32 {
        let content = at.to_be_bytes();
        // All of it, and something else at the end, without making it here.
        let mut stored = [number(64 << 20), number((64 << 20) + 4)].concat();
        for part in 0u32..16 {
            stored.extend_from_slice(&[0xff]);
            stored.extend_from_slice(&(part << 22).to_le_bytes());
            stored.extend_from_slice(&(4u32 << 20).to_le_bytes()[..3]);
        }
        stored.push(4);
        stored.extend_from_slice(&content);
        let id = packing.id(base);
        packing.add(7, id.as_slice(), &stored, Kind::Blob, content.to_vec());
    }
    let pack = packing.pack();
    assert!(pack.len() < 1 << 20, "{}", pack.len());
    let Unpacked::Bad(lines) = site.unpack(&pack, |_| 1).await else { panic!("it was taken") };
    let last = lines.last().unwrap();
    assert!(last.contains("in 1 s of processor time") && last.contains("push an older commit first"), "{lines:?}");
}

/// What is here may be deep, and asked for often.
#[tokio::test]
async fn looking_for_what_is_here_is_counted() {
    let site = Site::new().await;
    let mut here = Packing::default();
    here.whole(Kind::Blob, b"0");
    for at in 1..=100 {
        here.anew(at - 1, at.to_string().as_bytes());
    }
    site.git(&["index-pack", "--stdin"], &here.pack());
    let mut packing = Packing::default();
    let entry = |at: usize| [format!("100644 {at:03}\0").as_bytes(), here.id(at).as_slice()].concat();
    packing.whole(Kind::Tree, &(0..=100).flat_map(entry).collect::<Vec<u8>>());
    let survey = std::sync::Arc::new(site.survey(&packing));
    let steps = (0..=100).map(|depth| 1 + depth).sum::<u64>();
    let objects = site.repository.dir().join("objects");
    for (steps_max, is_good) in [(steps, true), (steps - 1, false)] {
        let (survey, objects) = (survey.clone(), objects.clone());
        let problems = patiently(move |patience| {
            let limits = Limits { steps_max, ..PLENTY };
            Whole { survey: Some(&survey), objects: &objects, refs: &[], limits }.problems(patience).unwrap()
        });
        let problems = problems.await;
        assert_eq!(problems.is_empty(), is_good, "{steps_max}: {problems:?}");
        assert!(is_good || problems[0].contains("push an older commit first"), "{problems:?}");
    }
}

/// As `git repack` makes it when it is asked for the deepest chains.
#[tokio::test]
async fn a_history_in_deep_chains_is_good() {
    const COMMITS: usize = 1_500;
    let from = Site::new().await;
    let mut history = String::new();
    for at in 0..COMMITS {
        let person = format!("a <a@example.com> {} +0000", 1_700_000_000 + at);
        history += &format!("commit refs/heads/main\nauthor {person}\ncommitter {person}\ndata 0\n");
        let (file, text) = (at % 40, at.to_string());
        history += &format!("M 100644 inline folder/{file:02}\ndata {}\n{text}\n", text.len());
    }
    from.git(&["fast-import", "--quiet"], history.as_bytes());
    from.git(&["repack", "-adfq", "--depth=4095", "--window=10"], b"");
    let pack = std::fs::read_dir(from.repository.dir().join("objects/pack")).unwrap();
    let pack = pack.map(|entry| entry.unwrap().path()).find(|path| path.extension().unwrap() == "pack").unwrap();
    let told = from.git(&["verify-pack", "-v", pack.to_str().unwrap()], b"");
    let depths = told.lines().filter_map(|line| line.strip_prefix("chain length = ")?.split(':').next()?.parse().ok());
    assert!(depths.max() > Some(250), "it is deep");
    let sizes = told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let sizes = sizes.filter(|fields| fields.len() >= 5 && matches!(fields[1], "tree" | "commit"));
    let objects = sizes.count();
    let (made, _, ended) = rebuild(Survey::of(&pack).unwrap(), PLENTY).await;
    assert_eq!(ended, Ok(()));
    assert!(made.len() == objects && made.values().all(|times| *times == 1), "{} of {objects}", made.len());
    let to = Site::new().await;
    let Unpacked::Good(received) = to.unpack(&std::fs::read(&pack).unwrap(), |_| 100).await else { panic!("refused") };
    let tip = ObjectId::parse(&from.git(&["rev-parse", "main"], b"")).unwrap();
    assert_eq!(received.broken(vec![("refs/heads/main".into(), tip)]).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_pack_that_is_not_as_its_index_says() {
    let site = Site::new().await;
    let mut packing = Packing::default();
    packing.whole(Kind::Blob, b"0");
    packing.anew(0, b"1");
    let path = site.file(&packing.pack());
    let mut bytes = std::fs::read(&path).unwrap();
    // The distance to its base, now to nowhere.
    let at = packing.objects[1].2 + 1;
    bytes[at] = 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(Survey::of(&path), Err(SurveyError::Unreadable(_))));
}

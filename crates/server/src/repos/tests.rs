//! A whole server with git as its client, on a store that fails when it is
//! told to, and with a git program that stops or dies where it is told to.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_store::{Store, Transaction};
use tidegate_testkit::client::Client;
use tidegate_testkit::git_http::{self, GitHttp};
use tidegate_testkit::{MemoryEngine, bare};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

use crate::http::Listener;
use crate::server::{Options, Server, wire};

/// Only ends a hang.
const HANG_MAX: Duration = Duration::from_secs(120);
const REPOSITORY: &str = "git/system/control.git";
const SYNC: &str = "mutation($namespace: String!, $name: String!) {
    syncRepository(namespace: $namespace, name: $name) { inForce commit problems } }";
const OWNER: &str = r#"{ resource(apiVersion: "v1", kind: "Namespace", name: "shop") { object } }"#;

struct Site {
    dir: tempfile::TempDir,
    engine: Arc<MemoryEngine>,
    store: Store,
    client: Client,
}

impl Site {
    /// With a work tree `w`, from which things are pushed.
    async fn start(git: PathBuf) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut repos = super::Options::new(std::env::var_os("PATH").unwrap());
        repos.git = git;
        repos.remote.secrets_dir = Some(dir.path().join("secrets"));
        let options = Options::on_loopback(dir.path().to_owned(), repos);
        let engine = Arc::new(MemoryEngine::default());
        let store = Store::with_engine(engine.clone(), options.store.clone()).unwrap();
        let listener = Listener::bind(&options.listen).unwrap();
        let server = Server { listener, wired: wire(store.clone(), options).await.unwrap() };
        let token = std::fs::read_to_string(server.admin_token_path()).unwrap();
        let client = Client::new(&server.url(), token.trim());
        tokio::spawn(server.run());
        bare::git(dir.path(), &["init", "-q", "-b", "main", "w"]);
        Self { dir, engine, store, client }
    }

    fn bare(&self) -> PathBuf {
        self.dir.path().join("repos/system/control.git")
    }

    fn refs(&self) -> String {
        bare::git(&self.bare(), &["for-each-ref"])
    }

    /// A commit with one Namespace, whose label says who owns it.
    fn commit(&self, owner: &str) -> String {
        let tree = self.dir.path().join("w");
        let text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{owner: {owner}}}}}\n");
        std::fs::write(tree.join("shop.yaml"), text).unwrap();
        bare::git(&tree, &["add", "."]);
        bare::git(&tree, &["commit", "-q", "-m", owner]);
        bare::git(&tree, &["rev-parse", "HEAD"])
    }

    async fn push(&self, refspec: &str) -> Output {
        let header = format!("http.extraHeader=Authorization: Bearer {}", self.client.token);
        let url = format!("{}/{REPOSITORY}", self.client.url);
        let mut push = bare::command(&self.dir.path().join("w"));
        push.args(["-c", &header, "push", "--quiet", &url, refspec]);
        tokio::task::spawn_blocking(move || push.output().unwrap()).await.unwrap()
    }

    async fn pushed(&self, refspec: &str) {
        let output = self.push(refspec).await;
        assert!(output.status.success(), "{refspec}: {}", String::from_utf8_lossy(&output.stderr));
    }

    async fn owner(&self) -> Value {
        self.client.data(OWNER, json!({})).await["resource"]["object"]["metadata"]["labels"]["owner"].take()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_ref_moves_while_the_store_takes_no_writes() {
    let site = Site::start("git".into()).await;
    site.commit("ada");
    site.pushed("HEAD:main").await;
    site.pushed("HEAD:old").await;
    let refs = site.refs();
    site.engine.fail_writes("no room");
    // Whoever writes first finds out; here, nobody who pushes.
    let write = Transaction { marks: vec![("test".into(), Some("1".into()))], ..Transaction::default() };
    site.store.commit(write).await.unwrap_err();
    site.commit("eve");
    // What is projected, what is not, and what brings no objects.
    for refspec in ["HEAD:main", "HEAD:refs/heads/new", "HEAD:refs/tags/v1", ":old"] {
        let output = site.push(refspec).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(site.refs(), refs, "{refspec}: {told}");
        assert!(!output.status.success(), "{refspec} was taken");
        assert!(told.contains("the store takes no writes") && told.contains("no room"), "{refspec}: {told}");
    }
    assert_eq!(site.owner().await, "ada");
}

async fn sync(client: &Client, namespace: &str, name: &str) -> Value {
    client.send(SYNC, json!({"namespace": namespace, "name": name})).await["data"]["syncRepository"].take()
}

/// A git that does `instead` at its next `command`, once there is a file
/// `armed` beside it; and the command afterwards.
fn stumbling_git(folder: &Path, command: &str, instead: &str) -> PathBuf {
    let script = format!(
        "#!/bin/sh\n\
         beside=$(dirname \"$0\")\n\
         case \" $* \" in *\" {command} \"*)\n\
         if mv \"$beside/armed\" \"$beside/sprung\" 2>/dev/null; then {instead}; fi\n\
         esac\n\
         exec git \"$@\"\n"
    );
    let path = folder.join("git");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn arm(folder: &Path) {
    std::fs::write(folder.join("armed"), "").unwrap();
}

/// The branch of a fetched repository is moved by a git that is killed while it
/// has the lock: the next sync moves it.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_move_of_a_fetched_branch_leaves_no_lock() {
    let folder = tempfile::tempdir().unwrap();
    let git = stumbling_git(folder.path(), "update-ref", "touch refs/heads/main.lock; kill -9 $$");
    let site = Site::start(git).await;
    let mirror = Mirror::of(&site).await;
    let commit = mirror.commit(&site, "eve");
    arm(folder.path());
    assert_ne!(sync(&site.client, "default", "mirror").await["inForce"], true);
    assert!(folder.path().join("sprung").exists(), "git was killed");
    assert_eq!(sync(&site.client, "default", "mirror").await["inForce"], true);
    assert_eq!(mirror.head(), commit);
}

/// Nobody has checked what a host sends. Git itself would compare this tree,
/// and would be wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_tree_that_was_fetched_is_named() {
    let site = Site::start("git".into()).await;
    let mirror = Mirror::of(&site).await;
    let good = mirror.commit(&site, "eve");
    assert_eq!(sync(&site.client, "default", "mirror").await["inForce"], true);
    let blob = bare::git(&mirror.source, &["rev-parse", "main:shop.yaml"]);
    let id = (0..20).map(|at| u8::from_str_radix(&blob[2 * at..2 * at + 2], 16).unwrap());
    let entry = |name: &str| format!("100644 {name}\0").into_bytes().into_iter().chain(id.clone());
    let content: Vec<u8> = entry("b.yaml").chain(entry("a.yaml")).collect();
    std::fs::write(mirror.source.join("tree"), content).unwrap();
    let tree = bare::git(&mirror.source, &["hash-object", "-t", "tree", "-w", "--literally", "tree"]);
    let bad = bare::git(&mirror.source, &["commit-tree", "-p", "main", "-m", "bad", &tree]);
    bare::git(&mirror.source, &["update-ref", "refs/heads/main", &bad]);
    let told = sync(&site.client, "default", "mirror").await;
    let problem = told["problems"][0].as_str().unwrap_or_default();
    assert!(told["inForce"] == false && problem.contains(&tree) && problem.contains("not sorted"), "{told}");
    assert_eq!(mirror.head(), good, "what is served is what is in force");
    let mended = mirror.commit(&site, "ada");
    assert_eq!(sync(&site.client, "default", "mirror").await["inForce"], true);
    assert_eq!(mirror.head(), mended);
}

/// The Repository `default/mirror`, which is fetched from another host.
struct Mirror {
    _host: GitHttp,
    /// What is fetched.
    source: PathBuf,
    /// Where it is served from.
    bare: PathBuf,
}

impl Mirror {
    async fn of(site: &Site) -> Self {
        let login = site.dir.path().join("secrets/default/login");
        std::fs::create_dir_all(&login).unwrap();
        std::fs::write(login.join("username"), git_http::USERNAME).unwrap();
        std::fs::write(login.join("password"), git_http::PASSWORD).unwrap();
        let host = GitHttp::start();
        let source = host.create("source.git");
        let text = format!(
            "apiVersion: tidegate.dev/v1\nkind: Repository\nmetadata: {{name: mirror, namespace: default}}\n\
             spec: {{path: unused, remote: {{url: '{}', secretRef: {{name: login}}}}}}\n",
            host.url("source.git")
        );
        std::fs::write(site.dir.path().join("w/mirror.yaml"), text).unwrap();
        site.commit("ada");
        site.pushed("HEAD:main").await;
        Self { _host: host, source, bare: site.dir.path().join("repos/default/mirror.git") }
    }

    /// At the other host.
    fn commit(&self, site: &Site, owner: &str) -> String {
        let commit = site.commit(owner);
        let source = self.source.display().to_string();
        bare::git(&site.dir.path().join("w"), &["push", "-q", "--force", &source, "HEAD:main"]);
        commit
    }

    fn head(&self) -> String {
        bare::git(&self.bare, &["rev-parse", "main"])
    }
}

/// A git that stops before `git log`, once it is armed, until it is let go.
struct Gate {
    dir: tempfile::TempDir,
    reached: pipe::Receiver,
    go: pipe::Sender,
}

impl Gate {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["reached", "go"] {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path(name), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }
        stumbling_git(dir.path(), "log", "echo > \"$beside/reached\"; read _ < \"$beside/go\"");
        // Open at both ends: whoever is first need not wait, and finds no end.
        let reached = pipe::OpenOptions::new().read_write(true).open_receiver(path("reached")).unwrap();
        let go = pipe::OpenOptions::new().read_write(true).open_sender(path("go")).unwrap();
        Self { reached, go, dir }
    }

    async fn reached(&mut self) {
        tokio::time::timeout(HANG_MAX, self.reached.read_u8()).await.expect("git comes here").unwrap();
    }

    async fn open(&mut self) {
        self.go.write_all(b"\n").await.unwrap();
    }
}

/// The branch was set back by hand, and somebody looks at it. While he reads,
/// the commit that is in force is pushed again: the branch moves, what is in
/// force does not. What he has read is then no longer the branch.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_that_began_before_a_push_of_what_is_in_force() {
    let mut gate = Gate::new();
    let site = Site::start(gate.dir.path().join("git")).await;
    let older = site.commit("ada");
    site.pushed("HEAD:main").await;
    let newer = site.commit("eve");
    site.pushed("HEAD:main").await;
    set_back(&site.bare(), &older);
    arm(gate.dir.path());
    let client = site.client.clone();
    let look = tokio::spawn(async move { sync(&client, "system", "control").await });
    gate.reached().await;
    site.pushed("HEAD:main").await;
    gate.open().await;
    let told = tokio::time::timeout(HANG_MAX, look).await.expect("the look ends").unwrap();
    assert_eq!(site.owner().await, "eve", "what is in force was set back: {told}");
    assert_eq!(bare::git(&site.bare(), &["rev-parse", "main"]), newer);
}

fn set_back(bare: &Path, commit: &str) {
    bare::git(bare, &["update-ref", "refs/heads/main", commit]);
}

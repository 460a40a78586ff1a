//! A remote, a branch and what is needed to look at both.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use tidegate_git::credentials::{Credentials, Secret};
use tidegate_git::{Access, PlainHttp, Program, Remote, RemoteLimits, RemoteUrl};
use tidegate_model::mirror::ResourceKey;
use tidegate_reverser::branch::{
    BaseFolder, Branch, BranchConfig, BranchStatus, Destination, DestinationId, GitMetrics, Limits, Operator,
    ReadFuture, Reader, Scope, Ticket, Turns,
};
use tidegate_reverser::change::{Author, Change, Listed, State, Version, What};
use tidegate_reverser::lease::Term;
use tidegate_reverser::secrets::SecretPolicy;
use tidegate_testkit::git_http::{GitHttp, PASSWORD, USERNAME};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub const REPOSITORY: &str = "r.git";
/// Much longer than anything here takes.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub struct Rig {
    pub http: GitHttp,
    /// The remote, on disk.
    pub remote: PathBuf,
    pub home: TempDir,
    pub cluster: Arc<Cluster>,
}

/// What a branch reads again, and the names of what it has read.
#[derive(Default)]
pub struct Cluster(pub Mutex<HashMap<ResourceKey, State>>, pub Mutex<Vec<String>>);

impl Reader for Cluster {
    fn read<'r>(&'r self, key: &'r ResourceKey) -> ReadFuture<'r> {
        let state = self.0.lock().unwrap().get(key).cloned();
        self.1.lock().unwrap().push(key.name.to_string());
        Box::pin(async move { Ok(state) })
    }
}

impl Rig {
    pub fn new() -> Self {
        let http = GitHttp::start();
        let remote = http.create(REPOSITORY);
        Self { http, remote, home: tempfile::tempdir().unwrap(), cluster: Arc::default() }
    }

    pub fn access(&self, password: &str) -> Remote {
        remote(&self.http.url(REPOSITORY), password)
    }

    pub fn limits(&self) -> Limits {
        Limits { silence: Duration::from_millis(20), ..Limits::default() }
    }

    pub fn branch(&self) -> Branch {
        self.branch_with(self.limits(), destination(SecretPolicy::Skip))
    }

    pub fn branch_with(&self, limits: Limits, destination: Destination) -> Branch {
        let config = config(self.home.path(), limits);
        let branch = Branch::start(config, self.access(PASSWORD), self.cluster.clone(), GitMetrics::default());
        branch.set_destination(&id(), destination);
        branch
    }

    pub fn git(&self, script: &str) -> String {
        git(&self.remote, script)
    }

    /// The files of the branch.
    pub fn files(&self) -> BTreeMap<String, String> {
        let names = self.git("git ls-tree -r --name-only main");
        names.lines().map(|name| (name.to_owned(), self.git(&format!("git show 'main:{name}'")))).collect()
    }

    pub fn names(&self) -> String {
        self.git("git ls-tree -r --name-only main").replace('\n', " ")
    }

    /// `author: subject`, oldest first.
    pub fn log(&self) -> Vec<String> {
        self.git("git log --reverse --format='%an: %s' main").lines().map(str::to_owned).collect()
    }

    /// Somebody else's commit, on top of what is there.
    pub fn foreign(&self, script: &str) {
        let dir = tempfile::tempdir().unwrap();
        let remote = self.remote.display();
        git(
            dir.path(),
            &format!(
                "git init -q -b main w; cd w; git pull -q {remote} main 2>/dev/null || true; {script}; git add -A
                 git -c user.name=eve -c user.email=e@x commit -qm foreign; git push -q {remote} HEAD:main"
            ),
        );
    }
}

pub fn remote(url: &str, password: &str) -> Remote {
    let url = RemoteUrl::parse(url, PlainHttp::LoopbackOnly).unwrap();
    let credentials = Credentials::Basic { username: Secret::new(USERNAME), password: Secret::new(password) };
    Remote { url, access: Access { credentials, ca: None }, limits: RemoteLimits::default() }
}

pub fn config(home: &Path, limits: Limits) -> BranchConfig {
    let program = Program { git: "git".into(), search_path: std::env::var_os("PATH").unwrap(), home: home.to_owned() };
    let operator = Operator {
        name: "tidegate".into(),
        email: "tidegate@example.com".into(),
        noreply_domain: "users.noreply.test".into(),
        controller_namespace: "system".into(),
        controller_name: "tidegate".into(),
        instance_id: "i-1".into(),
    };
    let turns = Turns::new(Arc::new(Semaphore::new(1)), 1);
    BranchConfig {
        program,
        clone_dir: home.join("clone"),
        branch: "main".into(),
        operator,
        cluster_uid: "c-1".into(),
        limits,
        turns,
        term: Term::endless(),
    }
}

pub fn destination(secrets: SecretPolicy) -> Destination {
    Destination { base_folder: BaseFolder::parse("live").unwrap(), secrets, signer: None }
}

pub fn id() -> DestinationId {
    DestinationId("ns/dest".into())
}

pub fn git(dir: &Path, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-ec", script]).current_dir(dir).env("HOME", dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub fn key(name: &str) -> ResourceKey {
    ResourceKey::new("", "v1", "configmaps", Some("default"), name)
}

pub fn yaml(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: default\ndata:\n  v: \"{value}\"\n"
    )
}

pub fn version(resource_version: &str) -> Version {
    Version { uid: "u-1".into(), resource_version: resource_version.into(), field_manager: None }
}

pub fn state(name: &str, value: &str) -> State {
    State { version: version(value), yaml: yaml(name, value).into() }
}

/// A value, or nothing for a deletion.
pub fn change(name: &str, author: &str, value: &str) -> Change {
    let what = if value.is_empty() { What::Delete(version("0")) } else { What::Put(state(name, value)) };
    let author = match author {
        "" => Author::Unknown,
        name => Author::User { name: name.into(), email: format!("{name}@example.com").into() },
    };
    Change { key: key(name), what, author, seen_at: Instant::now() }
}

pub fn submit(branch: &Branch, changes: &[(&str, &str, &str)]) -> Ticket {
    let submit = |(name, author, value): &(&str, &str, &str)| branch.submit(&id(), change(name, author, value));
    let tickets: Vec<_> = changes.iter().map(submit).collect();
    *tickets.last().unwrap()
}

pub fn seed(branch: &Branch, objects: &[(&str, &str)]) -> Ticket {
    let listed = |(name, value): &(&str, &str)| Listed::new(key(name), state(name, value));
    branch.seed(&id(), Scope::Whole, objects.iter().map(listed))
}

pub async fn pushed(branch: &Branch, ticket: Ticket) {
    let waited = tokio::time::timeout(PATIENCE, branch.acknowledged(ticket)).await;
    assert!(waited.unwrap_or_else(|_| panic!("{:?}", branch.status().borrow())), "stopped");
}

pub async fn until(branch: &Branch, is_so: impl FnMut(&BranchStatus) -> bool) {
    let mut status = branch.status();
    let waited = tokio::time::timeout(PATIENCE, status.wait_for(is_so)).await;
    waited.unwrap_or_else(|_| panic!("{:?}", branch.status().borrow())).unwrap();
}

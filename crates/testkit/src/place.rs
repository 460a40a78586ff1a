//! One namespace of a cluster and the repository that mirrors it: what the
//! tests of the reverser configure, and what they wait for.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bare;
use crate::cluster::{ADMIN, Cluster};
use crate::git_http::{GitHttp, PASSWORD, USERNAME};

/// For a machine that is busy with everything else; nothing takes as long.
pub const PATIENCE: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Asks until there is an answer.
pub fn wait<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "no {what} in time");
        std::thread::sleep(POLL_INTERVAL);
    }
}

pub struct Place<'r> {
    pub cluster: &'r Cluster,
    pub git: &'r GitHttp,
    pub namespace: String,
    pub repository: PathBuf,
}

/// One commit.
#[derive(Clone, PartialEq, Debug)]
pub struct Commit {
    pub id: String,
    pub author: String,
    pub committer: String,
    pub subject: String,
}

impl<'r> Place<'r> {
    /// A namespace with a repository and a destination at `live` of `main`.
    pub fn create(cluster: &'r Cluster, git: &'r GitHttp, prefix: &str) -> Self {
        let namespace = cluster.namespace(prefix);
        let repository = git.create(&format!("{namespace}.git"));
        let place = Self { cluster, git, namespace, repository };
        place.secret("git", json!({"username": USERNAME, "password": PASSWORD}));
        place.repo_config("repo", &place.url(), Some("git"));
        place.destination("live", "live");
        place
    }

    pub fn url(&self) -> String {
        self.git.url(&format!("{}.git", self.namespace))
    }

    pub fn apply(&self, object: &Value) {
        self.apply_as(ADMIN, object);
    }

    pub fn apply_as(&self, user: &str, object: &Value) {
        self.cluster.apply(user, &object.to_string());
    }

    pub fn config_map(&self, name: &str, value: &str) -> Value {
        let metadata = json!({"name": name, "namespace": self.namespace});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}})
    }

    pub fn secret(&self, name: &str, data: Value) {
        let metadata = json!({"name": name, "namespace": self.namespace});
        self.apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}));
    }

    pub fn kubectl_as(&self, user: &str, args: &[&str]) -> String {
        let mut all = vec!["--namespace", self.namespace.as_str()];
        all.extend(args);
        let said = self.cluster.kubectl(user, &all, "");
        said.unwrap_or_else(|complaint| panic!("kubectl {args:?} as {user}: {complaint}"))
    }

    pub fn repo_config(&self, name: &str, url: &str, secret: Option<&str>) {
        let mut spec = json!({"repoUrl": url, "allowedBranches": ["main", "other"]});
        if let Some(secret) = secret {
            spec["secretRef"] = json!({"name": secret});
        }
        self.configure("GitRepoConfig", name, spec);
    }

    pub fn destination(&self, name: &str, folder: &str) {
        self.destination_with(name, folder, json!({}));
    }

    /// With more fields, or others.
    pub fn destination_with(&self, name: &str, folder: &str, more: Value) {
        let mut spec = json!({"repoRef": {"name": "repo"}, "branch": "main", "baseFolder": folder});
        for (field, value) in more.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        self.configure("GitDestination", name, spec);
    }

    pub fn rule(&self, name: &str, destination: &str, rule: Value) {
        self.configure("WatchRule", name, json!({"destinationRef": {"name": destination}, "rules": [rule]}));
    }

    pub fn configure(&self, kind: &str, name: &str, spec: Value) {
        let mut metadata = json!({"name": name, "namespace": self.namespace});
        if kind == "ClusterWatchRule" {
            metadata = json!({"name": name});
        }
        self.apply(&json!({
            "apiVersion": "configbutler.ai/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
        }));
    }

    /// Waits until the object's `Ready` has this reason; its message.
    pub fn wait_reason(&self, kind: &str, name: &str, reason: &str) -> String {
        wait(&format!("{reason} of {kind} {}/{name}", self.namespace), || {
            let condition = self.ready(kind, name)?;
            (condition["reason"] == reason).then(|| condition["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    pub fn ready(&self, kind: &str, name: &str) -> Option<Value> {
        self.condition(kind, name, "Ready")
    }

    /// Of the object as it is now: `None` before the operator has seen it.
    pub fn condition(&self, kind: &str, name: &str, condition: &str) -> Option<Value> {
        let object = self.get(kind, name)?;
        let is_current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let conditions = object["status"]["conditions"].as_array()?;
        conditions.iter().find(|own| own["type"] == condition).filter(|_| is_current).cloned()
    }

    pub fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let args = ["--namespace", &self.namespace, "get", kind, name, "-o", "json"];
        serde_json::from_str(&self.cluster.kubectl(ADMIN, &args, "").ok()?).ok()
    }

    /// Rules that are watched, their webhook registered, their lists in Git.
    pub fn wait_ready(&self, rules: &[&str]) {
        for rule in rules {
            self.wait_reason("watchrule", rule, "Watching");
        }
        self.wait_reason("gitdestination", "live", "Mirroring");
    }

    /// The text of a file of `main`.
    pub fn file(&self, path: &str) -> Option<String> {
        let output =
            bare::command(&self.repository).args(["show", &format!("main:{path}")]).output().expect("git starts");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    pub fn wait_file(&self, path: &str, has: impl Fn(&str) -> bool) -> String {
        wait(&format!("{path} as expected"), || self.file(path).filter(|text| has(text)))
    }

    pub fn wait_no_file(&self, path: &str) {
        wait(&format!("end of {path}"), || self.file(path).is_none().then_some(()));
    }

    pub fn config_map_path(&self, name: &str) -> String {
        format!("live/v1/configmaps/{}/{name}.yaml", self.namespace)
    }

    /// Commits of `main` that touch `path`, the oldest first.
    pub fn commits(&self, path: &str) -> Vec<Commit> {
        let format = "--format=%H%x09%an <%ae>%x09%cn%x09%s";
        let text = self.read_git(&["log", "--reverse", format, "main", "--", path]);
        let commit = |line: &str| {
            let mut fields = line.split('\t').map(str::to_owned);
            let mut next = || fields.next().unwrap_or_default();
            Commit { id: next(), author: next(), committer: next(), subject: next() }
        };
        text.lines().map(commit).collect()
    }

    /// What all commits of `main` say of one trailer, the newest first.
    pub fn trailers(&self, name: &str) -> Vec<String> {
        let format = format!("--format=%(trailers:key={name},valueonly=true)");
        let text = self.read_git(&["log", &format, "main"]);
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    pub fn files(&self) -> Vec<String> {
        self.read_git(&["ls-tree", "-r", "--name-only", "main"]).lines().map(str::to_owned).collect()
    }

    /// Nothing before the first commit.
    fn read_git(&self, args: &[&str]) -> String {
        let output = bare::command(&self.repository).args(args).output().expect("git starts");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Somebody else's commit on `main`: these files, beside what is there.
    pub fn foreign_commit(&self, files: &[(String, String)]) {
        let put = |(path, text): &(String, String)| format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len());
        bare::feed(
            &self.repository,
            &["fast-import", "--quiet"],
            &self.foreign(&files.iter().map(put).collect::<String>()),
        );
    }

    /// The same, of changes as `git fast-import` reads them, while others push:
    /// `false` if one of them was faster.
    pub fn try_foreign(&self, changes: &str) -> bool {
        bare::try_feed(&self.repository, &["fast-import", "--quiet"], &self.foreign(changes))
    }

    fn foreign(&self, changes: &str) -> String {
        let parent = self.read_git(&["rev-parse", "--verify", "--quiet", "refs/heads/main"]);
        let mut import =
            "commit refs/heads/main\ncommitter eve <eve@example.com> 0 +0000\ndata 7\nforeign\n".to_owned();
        if !parent.is_empty() {
            import += &format!("from {parent}");
        }
        import + changes
    }
}

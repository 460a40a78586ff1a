//! A control plane, a Git server, an operator; and waiting for what they say.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::running::{ACCOUNT, Flags, Running, SYSTEM, options};
use serde_json::{Value, json};
use tidegate_assets::{Places, Program};
use tidegate_reverser::install::{InstallOptions, manifests};
use tidegate_testkit::bare;
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB, Cluster, Options, User};
use tidegate_testkit::daemon::{Scratch, free_port};
use tidegate_testkit::git_http::{GitHttp, PASSWORD, USERNAME};

/// For a machine that is busy with everything else; nothing takes as long.
pub const PATIENCE: Duration = Duration::from_secs(120);
const INSTALL: InstallOptions =
    InstallOptions { namespace: String::new(), image: String::new(), replicas: 1, is_crds_only: true };
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub struct Rig {
    pub operator: Option<Running>,
    pub cluster: Cluster,
    pub git: GitHttp,
    scratch: Scratch,
    webhook_port: u16,
    pub health_port: u16,
}

/// One for all tests that end nothing.
pub fn shared() -> &'static Rig {
    static SHARED: LazyLock<Rig> = LazyLock::new(|| Rig::start(Flags::default()));
    &SHARED
}

impl Rig {
    /// Five people may do everything; the operator runs.
    pub fn start(flags: Flags) -> Self {
        let people = ["carol", "dave", "erin"];
        let users = people.iter().map(|name| User::new(name)).collect();
        let cluster = Cluster::start(Options { users, ..Options::default() });
        let install = InstallOptions { is_crds_only: true, ..INSTALL };
        cluster.apply(ADMIN, &manifests(&install));
        cluster.admin(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
        for person in [ALICE, BOB].iter().chain(&people) {
            cluster.grant(person, "cluster-admin");
        }
        let (webhook_port, health_port) = (free_port(), free_port());
        let mut rig =
            Self { operator: None, cluster, git: GitHttp::start(), scratch: Scratch::new(), webhook_port, health_port };
        rig.install_chart();
        rig.start_operator(flags);
        rig
    }

    /// What the chart allows is what the operator has: it runs as its account.
    fn install_chart(&self) {
        let (chart, namespace) = (concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/tidegate-reverser"), SYSTEM);
        self.cluster.admin(&["create", "namespace", namespace]);
        let more = r#"rbac.extraRules=[{"apiGroups":["*"],"resources":["widgets"],"verbs":["get","list","watch"]}]"#;
        let args =
            ["template", ACCOUNT, chart, "--namespace", namespace, "--kube-version", "1.36.0", "--set-json", more];
        let manifests = helm(&args);
        self.cluster.apply(ADMIN, &manifests);
    }

    fn account_kubeconfig(&self) -> PathBuf {
        let token = self.cluster.service_account_token(SYSTEM, ACCOUNT);
        self.cluster.kubeconfig_of_token(ACCOUNT, &token)
    }

    pub fn start_operator(&mut self, flags: Flags) {
        self.operator = Some(self.run_operator("work", self.webhook_port, self.health_port, flags));
    }

    /// Waits for the lease of the first.
    pub fn second_operator(&self) -> Running {
        self.run_operator("second", free_port(), free_port(), Flags::default())
    }

    fn run_operator(&self, folder: &str, webhook: u16, health: u16, flags: Flags) -> Running {
        let kubeconfig = self.account_kubeconfig();
        let work_dir = self.scratch.path().join(folder);
        let options = move |cluster_uid: String| options(&work_dir, cluster_uid, webhook, health, flags);
        Running::start(kubeconfig, options)
    }

    /// A namespace with a repository and a destination at `live` of `main`.
    pub fn place(&self, prefix: &str) -> Place<'_> {
        let namespace = self.cluster.namespace(prefix);
        let repository = self.git.create(&format!("{namespace}.git"));
        let place = Place { rig: self, namespace: namespace.clone(), repository };
        place.apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git", "namespace": namespace},
            "stringData": {"username": USERNAME, "password": PASSWORD},
        }));
        place.repo_config("repo", &self.git.url(&format!("{namespace}.git")), Some("git"));
        place.destination("live", "live");
        place
    }

    /// Asks until there is an answer; fails with the operator's log.
    pub fn wait<T>(&self, what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            if let Some(found) = ready() {
                return found;
            }
            assert!(started.elapsed() < PATIENCE, "no {what} in time");
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

pub fn helm(args: &[&str]) -> String {
    let places = Places::from_env().unwrap_or_else(|missing| panic!("{missing}"));
    let program = places.find(Program::Helm).unwrap_or_else(|missing| panic!("{missing}"));
    let output = std::process::Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "helm {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub struct Place<'r> {
    pub rig: &'r Rig,
    pub namespace: String,
    pub repository: PathBuf,
}

/// One commit, the oldest first.
#[derive(Clone, PartialEq, Debug)]
pub struct Commit {
    pub id: String,
    pub author: String,
    pub committer: String,
    pub subject: String,
}

impl Place<'_> {
    pub fn apply(&self, object: &Value) {
        self.apply_as(ADMIN, object);
    }

    pub fn apply_as(&self, user: &str, object: &Value) {
        self.rig.cluster.apply(user, &object.to_string());
    }

    pub fn config_map(&self, name: &str, value: &str) -> Value {
        let metadata = json!({"name": name, "namespace": self.namespace});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}})
    }

    pub fn kubectl_as(&self, user: &str, args: &[&str]) -> String {
        let mut all = vec!["--namespace", self.namespace.as_str()];
        all.extend(args);
        let said = self.rig.cluster.kubectl(user, &all, "");
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
        self.configure(
            "GitDestination",
            name,
            json!({"repoRef": {"name": "repo"}, "branch": "main", "baseFolder": folder}),
        );
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
        self.rig.wait(&format!("{reason} of {kind} {}/{name}", self.namespace), || {
            let condition = self.ready(kind, name)?;
            (condition["reason"] == reason).then(|| condition["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    pub fn ready(&self, kind: &str, name: &str) -> Option<Value> {
        let said =
            self.rig.cluster.kubectl(ADMIN, &["-n", &self.namespace, "get", kind, name, "-o", "json"], "").ok()?;
        let object: Value = serde_json::from_str(&said).ok()?;
        let is_current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let conditions = object["status"]["conditions"].as_array()?;
        conditions.iter().find(|condition| condition["type"] == "Ready").filter(|_| is_current).cloned()
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
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    pub fn wait_file(&self, path: &str, has: impl Fn(&str) -> bool) -> String {
        self.rig.wait(&format!("{path} as expected"), || self.file(path).filter(|text| has(text)))
    }

    pub fn wait_no_file(&self, path: &str) {
        self.rig.wait(&format!("end of {path}"), || self.file(path).is_none().then_some(()));
    }

    pub fn config_map_path(&self, name: &str) -> String {
        format!("live/v1/configmaps/{}/{name}.yaml", self.namespace)
    }

    /// Commits of `main` that touch `path`, the oldest first.
    pub fn commits(&self, path: &str) -> Vec<Commit> {
        let output = bare::command(&self.repository)
            .args(["log", "--reverse", "--format=%H%x09%an <%ae>%x09%cn%x09%s", "main", "--", path])
            .output()
            .expect("git starts");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| {
                let mut fields = line.split('\t').map(str::to_owned);
                let mut next = || fields.next().unwrap_or_default();
                Commit { id: next(), author: next(), committer: next(), subject: next() }
            })
            .collect()
    }

    pub fn files(&self) -> Vec<String> {
        let output = bare::command(&self.repository).args(["ls-tree", "-r", "--name-only", "main"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

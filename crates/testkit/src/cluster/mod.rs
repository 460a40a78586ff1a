//! A real Kubernetes control plane: etcd and kube-apiserver, and
//! kube-controller-manager on request, on free ports of loopback.
//!
//! Everybody has a token; RBAC decides. `admin` may do everything, `alice` and
//! `bob` nothing until a test grants it. Calls block: a test that needs its
//! runtime's thread meanwhile calls them from another.

mod certificates;
mod etcd;
mod flags;
mod kubectl;
mod users;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidegate_assets::{Places, Program};

use crate::daemon::{Daemon, Scratch, free_port};
use certificates::Certificates;
pub use users::User;
pub use writer::Writer;

pub const ADMIN: &str = "admin";
pub const ALICE: &str = "alice";
pub const BOB: &str = "bob";
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";

/// A start takes about 3 s on a quiet machine; this one may be busy.
const START_MAX: Duration = Duration::from_secs(120);

#[derive(Clone, Default, Debug)]
pub struct Options {
    /// Beside `admin`, `alice` and `bob`.
    pub users: Vec<User>,
    /// Garbage collection, service accounts, namespaces that end.
    pub controller_manager: bool,
    /// Further flags of kube-apiserver, such as `--watch-cache=false`.
    pub apiserver_flags: Vec<String>,
}

/// Dropped in this order: whoever writes ends before what it writes to.
pub struct Cluster {
    controller_manager: Option<Daemon>,
    apiserver: Daemon,
    etcd: Daemon,
    etcd_port: u16,
    port: u16,
    options: Options,
    users: Vec<User>,
    places: Places,
    certificates: Certificates,
    scratch: Scratch,
}

/// One control plane for the tests of a binary, each in its own namespace.
pub fn shared() -> &'static Cluster {
    static SHARED: LazyLock<Cluster> = LazyLock::new(|| Cluster::start(Options::default()));
    &SHARED
}

impl Cluster {
    pub fn start(options: Options) -> Self {
        let places = Places::from_env().unwrap_or_else(|missing| panic!("{missing}"));
        let (scratch, etcd_port, port) = (Scratch::new(), free_port(), free_port());
        let folder = scratch.path();
        let certificates = Certificates::create(folder);
        let mut users = vec![User::new(ADMIN).in_group("system:masters"), User::new(ALICE), User::new(BOB)];
        users.push(User::new(CONTROLLER_MANAGER));
        users.extend(options.users.iter().cloned());
        users::write_tokens(folder, &users);
        for user in &users {
            users::write_kubeconfig(folder, &user.name, &user.token(), &url(port), &certificates.ca);
        }
        let etcd = Daemon::start(&find(&places, Program::Etcd), folder, &flags::etcd(etcd_port, free_port()));
        etcd.wait_for("answer", START_MAX, || etcd::revision(etcd_port).ok());
        let apiserver = start_apiserver(&places, folder, &flags::apiserver(port, etcd_port, &certificates, &options));
        let mut cluster = Self {
            controller_manager: None,
            apiserver,
            etcd,
            etcd_port,
            port,
            options,
            users,
            places,
            certificates,
            scratch,
        };
        cluster.wait_until_ready();
        cluster.start_controller_manager();
        cluster
    }

    pub fn url(&self) -> String {
        url(self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The administrator's, by a port that leads to the API server.
    pub fn kubeconfig_through(&self, port: u16) -> PathBuf {
        let name = format!("{ADMIN}-{port}");
        users::write_kubeconfig(self.scratch.path(), &name, &self.token(ADMIN), &url(port), &self.certificates.ca)
    }

    pub fn ca_pem(&self) -> &str {
        &self.certificates.ca_pem
    }

    pub fn ca_path(&self) -> &Path {
        &self.certificates.ca
    }

    pub fn token(&self, user: &str) -> String {
        self.user(user).token()
    }

    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        let user = self.user(user);
        users::write_kubeconfig(self.scratch.path(), &user.name, &user.token(), &self.url(), &self.certificates.ca)
    }

    /// A kubeconfig for another token, such as a service account's.
    pub fn kubeconfig_of_token(&self, name: &str, token: &str) -> PathBuf {
        users::write_kubeconfig(self.scratch.path(), name, token, &self.url(), &self.certificates.ca)
    }

    /// A namespace that no other test has.
    pub fn namespace(&self, prefix: &str) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let name = format!("{prefix}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.admin(&["create", "namespace", &name]);
        name
    }

    /// Ends the API server and starts it again at the same address, with
    /// nothing in its caches.
    pub fn restart_apiserver(&mut self) {
        self.stop_apiserver();
        self.start_apiserver();
    }

    /// Nobody answers until `start_apiserver`. Killed: asked to end, it waits
    /// a minute for whoever watches.
    pub fn stop_apiserver(&mut self) {
        self.apiserver.kill();
    }

    pub fn start_apiserver(&mut self) {
        let flags = flags::apiserver(self.port, self.etcd_port, &self.certificates, &self.options);
        self.apiserver = start_apiserver(&self.places, self.scratch.path(), &flags);
        self.wait_until_ready();
    }

    /// Forgets every version but the newest. The API server's own caches may
    /// still know older ones: a watch from an old version is expired for
    /// certain only after `restart_apiserver`, or with `--watch-cache=false`.
    pub fn compact(&self) {
        etcd::compact(self.etcd_port).unwrap_or_else(|error| panic!("failed to compact: {error}"));
    }

    /// The newest lines of kube-apiserver's log.
    pub fn log_tail(&self) -> String {
        self.apiserver.log_tail()
    }

    /// The process ids of everything that it runs.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = vec![self.etcd.pid(), self.apiserver.pid()];
        pids.extend(self.controller_manager.as_ref().map(Daemon::pid));
        pids
    }

    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    fn user(&self, name: &str) -> &User {
        let found = self.users.iter().find(|user| user.name == name);
        found.unwrap_or_else(|| panic!("no user {name}: name it in Options::users"))
    }

    /// Ready says that the roles are there; the namespace comes a moment later.
    fn wait_until_ready(&self) {
        let kubectl = self.kubectl_for(ADMIN);
        self.apiserver.wait_for("readiness", START_MAX, || kubectl.run(&["get", "--raw", "/readyz"], "").ok());
        let args = ["get", "namespace", "default"];
        self.apiserver.wait_for("default namespace", START_MAX, || kubectl.run(&args, "").ok());
    }

    fn start_controller_manager(&mut self) {
        if !self.options.controller_manager {
            return;
        }
        let flags = flags::controller_manager(&self.kubeconfig(CONTROLLER_MANAGER), &self.certificates);
        let program = find(&self.places, Program::KubeControllerManager);
        let manager = Daemon::start(&program, self.scratch.path(), &flags);
        let kubectl = self.kubectl_for(ADMIN);
        let args = ["get", "serviceaccount", "default"];
        manager.wait_for("default service account", START_MAX, || kubectl.run(&args, "").ok());
        self.controller_manager = Some(manager);
    }
}

fn start_apiserver(places: &Places, folder: &Path, flags: &[String]) -> Daemon {
    Daemon::start(&find(places, Program::KubeApiserver), folder, flags)
}

fn find(places: &Places, program: Program) -> PathBuf {
    places.find(program).unwrap_or_else(|missing| panic!("{missing}"))
}

fn url(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

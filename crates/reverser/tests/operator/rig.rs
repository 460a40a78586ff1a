//! A control plane, a Git server, an operator.

use std::path::PathBuf;
use std::sync::LazyLock;

use tidegate_reverser::install::{InstallOptions, manifests};
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB, Cluster, Options, User};
use tidegate_testkit::daemon::{Scratch, free_port};
use tidegate_testkit::git_http::GitHttp;
use tidegate_testkit::place::Place;
use tidegate_testkit::programs::helm;

use crate::running::{ACCOUNT, Flags, Running, SYSTEM, options};

const INSTALL: InstallOptions =
    InstallOptions { namespace: String::new(), image: String::new(), replicas: 1, is_crds_only: true };

/// Without an election: the next one need not wait for the end of a lease.
pub const ALONE: Flags = Flags { is_alone: true, has_controllers: false, lists_pages: false };

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
        let paging = flags.lists_pages.then(|| "--feature-gates=WatchList=false".to_owned());
        let (controller_manager, apiserver_flags) = (flags.has_controllers, paging.into_iter().collect());
        let cluster = Cluster::start(Options { users, controller_manager, apiserver_flags });
        cluster.apply(ADMIN, &manifests(&INSTALL));
        cluster.admin(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"]);
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
        Running::start(kubeconfig, options(&work_dir, webhook, health, flags))
    }

    /// A namespace with a repository and a destination at `live` of `main`.
    pub fn place(&self, prefix: &str) -> Place<'_> {
        Place::create(&self.cluster, &self.git, prefix)
    }

    /// A place that was made before.
    pub fn place_again(&self, (namespace, repository): &(String, PathBuf)) -> Place<'_> {
        let (cluster, git) = (&self.cluster, &self.git);
        Place { cluster, git, namespace: namespace.clone(), repository: repository.clone() }
    }
}

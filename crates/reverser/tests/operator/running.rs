//! An operator in a thread of this process.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use tidegate_git::{PlainHttp, Program};
use tidegate_reverser::branch::{Limits, Operator};
use tidegate_reverser::claims::{Omitted, PlanOptions};
use tidegate_reverser::cluster::connect;
use tidegate_reverser::engine;
use tidegate_reverser::lease::Rank;
use tidegate_reverser::operator::{self, LeaseOptions, OperatorOptions, WebhookOptions};
use tidegate_reverser::webhook::Target;
use tokio::sync::oneshot;

/// Where the chart is installed, and its release.
pub const SYSTEM: &str = "tidegate-system";
pub const ACCOUNT: &str = "reverser";

#[derive(Clone, Copy, Default)]
pub struct Flags {
    pub is_alone: bool,
    /// Of Kubernetes: garbage collection, deployments that have a revision.
    pub has_controllers: bool,
    /// An API server that does not stream lists.
    pub lists_pages: bool,
}

/// Dropped, it ends in the middle of whatever it does, as a killed one would:
/// its runtime goes, and its lease stays until it expires.
pub struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub fn start(kubeconfig: PathBuf, options: OperatorOptions) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let run = async {
                    let api = connect(Some(&kubeconfig), None).await.unwrap();
                    operator::run(api, options, std::future::pending()).await.unwrap();
                };
                tokio::select! {
                    () = run => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_timeout(Duration::from_secs(5));
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn options(work_dir: &Path, webhook: u16, health: u16, flags: Flags) -> OperatorOptions {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let holder = format!("replica-{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    let engine = engine::Options {
        plan: PlanOptions { omitted: Omitted::Preset, cross_namespace: true },
        exclusions: Vec::new(),
        discovery_refresh: Duration::from_secs(300),
        program: Program { git: "git".into(), search_path, home: work_dir.join("home") },
        work_dir: work_dir.to_owned(),
        limits: Limits { silence: Duration::from_millis(200), ..Limits::default() },
        operator: Operator {
            name: "tidegate-reverser".into(),
            email: "reverser@test".into(),
            noreply_domain: "users.noreply.test".into(),
            controller_namespace: SYSTEM.into(),
            controller_name: ACCOUNT.into(),
            instance_id: holder.clone(),
        },
        grace: Duration::from_millis(200),
        workers_max: 64,
        workers_per_repo_max: 5,
        plain_http: PlainHttp::LoopbackOnly,
    };
    OperatorOptions {
        engine,
        webhook: Some(WebhookOptions {
            listen: ([127, 0, 0, 1], webhook).into(),
            target: Target::Url(format!("https://127.0.0.1:{webhook}")),
            files: None,
            configuration: ACCOUNT.into(),
            // A machine that is busy with everything else is no reason to lose a name.
            timeout_s: 30,
            cluster: "test".into(),
        }),
        lease: (!flags.is_alone).then(|| LeaseOptions {
            namespace: SYSTEM.into(),
            name: ACCOUNT.into(),
            holder,
            rank: Rank::Replica,
        }),
        health_listen: ([127, 0, 0, 1], health).into(),
        is_ingesting: true,
    }
}

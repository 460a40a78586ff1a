//! A few control planes for all tests of this binary, one test at a time on
//! each: it runs an operator, and an operator works for the whole cluster.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB, Cluster, Options};
use tidegate_testkit::daemon::{Scratch, free_port};
use tidegate_testkit::git_http::GitHttp;
use tidegate_testkit::place::{Place, wait};

use crate::process::{Running, said, tidegate};

/// A machine that is busy with everything else is no reason to lose a name.
const PATIENT_S: u32 = 30;

/// Tests mostly wait, and a control plane takes half a GiB and some seconds of a
/// core to start.
const PLANES_MAX: usize = 3;

pub struct Plane {
    pub cluster: Cluster,
    pub git: GitHttp,
    pub scratch: Scratch,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { idle: Vec::new(), started: 0 });
static GIVEN_BACK: Condvar = Condvar::new();

struct Pool {
    idle: Vec<Plane>,
    started: usize,
}

/// A plane for the length of a test; one that failed left nothing that runs.
pub struct Held(Option<Plane>);

pub fn plane() -> Held {
    let pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let wait = |pool: &mut Pool| pool.idle.is_empty() && pool.started == PLANES_MAX;
    let mut pool = GIVEN_BACK.wait_while(pool, wait).unwrap_or_else(PoisonError::into_inner);
    if let Some(plane) = pool.idle.pop() {
        return Held(Some(plane));
    }
    pool.started += 1;
    drop(pool);
    let mut held = Held(None);
    held.0 = Some(Plane::start());
    held
}

impl Drop for Held {
    /// One that did not start makes room for another try.
    fn drop(&mut self) {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        match self.0.take() {
            Some(plane) => pool.idle.push(plane),
            None => pool.started -= 1,
        }
        GIVEN_BACK.notify_one();
    }
}

impl Deref for Held {
    type Target = Plane;

    fn deref(&self) -> &Plane {
        self.0.as_ref().expect("held until it is dropped")
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Plane {
        self.0.as_mut().expect("held until it is dropped")
    }
}

impl Plane {
    /// `tidegate reverse install --print | kubectl apply -f -`
    fn start() -> Self {
        // Tokens that are good from one moment on: their Secrets are read at each request.
        let apiserver_flags = vec!["--enable-bootstrap-token-auth=true".to_owned()];
        let (cluster, scratch) = (Cluster::start(Options { apiserver_flags, ..Options::default() }), Scratch::new());
        let printed = said(tidegate(scratch.path()).args(["reverse", "install", "--print"])).good();
        let applied = cluster.kubectl(ADMIN, &["apply", "-f", "-"], &printed);
        applied.unwrap_or_else(|complaint| panic!("{complaint}"));
        cluster.admin(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"]);
        for person in [ALICE, BOB] {
            cluster.grant(person, "cluster-admin");
        }
        Self { cluster, git: GitHttp::start(), scratch }
    }

    pub fn place(&self, prefix: &str) -> Place<'_> {
        Place::create(&self.cluster, &self.git, prefix)
    }

    /// An operator of this machine that is about to start. Each has its own
    /// ports; a folder may be an earlier one's.
    pub fn operator(&self, folder: &str) -> Start {
        let (webhook, health) = (free_port(), free_port());
        let kubeconfig = self.cluster.kubeconfig(ADMIN);
        let work_dir = self.scratch.path().join(folder);
        Start {
            kubeconfig,
            work_dir,
            webhook,
            called: webhook,
            health,
            waited_for_s: PATIENT_S,
            is_in_pod: false,
            more: Vec::new(),
        }
    }
}

pub struct Start {
    kubeconfig: PathBuf,
    pub work_dir: PathBuf,
    pub webhook: u16,
    /// Where the API server calls the webhook.
    called: u16,
    health: u16,
    waited_for_s: u32,
    is_in_pod: bool,
    more: Vec<String>,
}

impl Start {
    /// Another user, or another API server.
    pub fn of(mut self, kubeconfig: PathBuf) -> Self {
        self.kubeconfig = kubeconfig;
        self
    }

    pub fn with(mut self, flags: &[&str]) -> Self {
        self.more.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// How many seconds the API server waits for the webhook.
    pub fn waited_for(mut self, seconds: u32) -> Self {
        self.waited_for_s = seconds;
        self
    }

    /// As Kubernetes would start it: one replica of a Deployment.
    pub fn in_pod(mut self) -> Self {
        self.is_in_pod = true;
        self
    }

    /// The API server reaches the webhook by another port.
    pub fn called_at(mut self, port: u16) -> Self {
        self.called = port;
        self
    }

    /// Does not wait for anything.
    pub fn start(self) -> Reverser {
        let mut command = tidegate(self.work_dir.parent().unwrap());
        command.arg("reverse").arg("--kubeconfig").arg(&self.kubeconfig).arg("--work-dir").arg(&self.work_dir);
        command.arg(format!("--webhook-listen=127.0.0.1:{}", self.webhook));
        command.arg(format!("--webhook-url=https://127.0.0.1:{}", self.called));
        command.arg(format!("--webhook-timeout-sec={}", self.waited_for_s));
        command.arg(format!("--health-listen=127.0.0.1:{}", self.health)).args(&self.more);
        if self.is_in_pod {
            command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1");
        }
        Reverser { process: Running::start(&mut command), health: self.health, webhook: self.called }
    }

    pub fn ready(self) -> Reverser {
        let operator = self.start();
        operator.wait_ready();
        operator
    }
}

pub struct Reverser {
    pub process: Running,
    health: u16,
    /// Where the API server calls it.
    pub webhook: u16,
}

impl Reverser {
    /// Ends as it should; the next one need not wait for its lease.
    pub fn stop(mut self) {
        self.process.signal(Signal::TERM);
        assert!(self.process.wait().success(), "it ended badly");
    }

    pub fn is_ready(&self) -> bool {
        self.get("/readyz").is_some_and(|(status, _)| status == 200)
    }

    pub fn wait_ready(&self) {
        wait("readiness", || self.is_ready().then_some(()));
    }

    /// From now on no file of it grows beyond so many bytes.
    pub fn limit_files(&self, bytes_max: Option<u64>) {
        let pid = Pid::from_raw(i32::try_from(self.process.pid()).unwrap());
        let maximum = getrlimit(Resource::Fsize).maximum;
        prlimit(pid, Resource::Fsize, Rlimit { current: bytes_max.or(maximum), maximum }).unwrap();
    }

    /// The status and the body of an answer on the health port.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.health)).ok()?;
        // The answer ends with the connection.
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let status = answer.split(' ').nth(1)?.parse().ok()?;
        Some((status, answer.split_once("\r\n\r\n")?.1.to_owned()))
    }

    /// The sum of a metric over its labels.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics(name, "")
    }

    /// The same over those with a label.
    pub fn metrics(&self, name: &str, label: &str) -> Option<f64> {
        let (_, text) = self.get("/metrics")?;
        let is_it = |rest: &str| rest.starts_with([' ', '{']) && rest.contains(label);
        let of = |line: &str| line.strip_prefix(name).is_some_and(is_it);
        let values = text.lines().filter(|line| of(line)).map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum()
    }
}

impl Drop for Reverser {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.process.kill();
            eprintln!("the operator said:\n{}", self.process.err.rest());
        }
    }
}

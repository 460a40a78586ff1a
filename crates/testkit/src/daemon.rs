//! A server of another project as a child of the test: its log, its end.
//!
//! Invariant: it ends with the test, however the test ends. A dropped daemon
//! is killed and waited for; one whose test was killed is killed by the kernel
//! (`PR_SET_PDEATHSIG`), and a small shell removes the files.

use std::fs::File;
use std::net::TcpListener;
use std::ops::{Range, RangeInclusive};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

const LOG_LINES_MAX: usize = 60;
const POLL_INTERVAL: Duration = Duration::from_millis(30);

pub struct Daemon {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Daemon {
    /// Starts `program`, whose output goes to `<name>.log` in `folder`.
    pub fn start(program: &Path, folder: &Path, args: &[String]) -> Self {
        let name = program.file_name().expect("a program has a name").to_string_lossy().into_owned();
        let log = folder.join(format!("{name}.log"));
        let out = File::options().create(true).append(true).open(&log).expect("a log can be opened");
        // `setpriv` asks the kernel to kill the program with its parent, and
        // then becomes the program.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(args).current_dir(folder);
        command.stdin(Stdio::null()).stderr(out.try_clone().expect("a second handle")).stdout(out).process_group(0);
        let child = spawn(command).unwrap_or_else(|error| panic!("failed to start {name} by setpriv: {error}"));
        Self { child, name, log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks `ready` until it answers; fails with the log if the daemon ends
    /// before, or is not ready in time.
    pub fn wait_for<T>(&self, what: &str, limit: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            if let Some(found) = ready() {
                return found;
            }
            let name = &self.name;
            if self.has_ended() {
                panic!("{name} ended before {what}:\n{}", self.log_tail());
            }
            if started.elapsed() > limit {
                panic!("{name}: no {what} within {} s:\n{}", limit.as_secs(), self.log_tail());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Not waited for yet: its status stays for whoever stops it.
    fn has_ended(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // `pid (name) S …`; a name may contain brackets.
        status.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    }

    /// The newest lines that it wrote.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES_MAX)..].join("\n")
    }

    /// At once; gone when it returns.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    fn signal(&self, signal: Signal) {
        // Its own group, so that what it started goes with it.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Gone already is as good.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the end of {}:\n{}", self.log.display(), self.log_tail());
        }
        self.kill();
    }
}

/// The kernel's "parent" is the thread that starts a child. A test's thread
/// ends with the test while others still use a shared daemon, so all children
/// are started by one thread that lives as long as the process.
fn spawn(command: Command) -> std::io::Result<Child> {
    type Order = (Command, mpsc::Sender<std::io::Result<Child>>);
    static SPAWNER: LazyLock<mpsc::Sender<Order>> = LazyLock::new(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    let (answer, answered) = mpsc::channel();
    SPAWNER.send((command, answer)).expect("the spawner lives");
    answered.recv().expect("the spawner answers")
}

/// A folder that is removed when it is dropped, and also when the process ends
/// without dropping it: a static, or a killed test.
pub struct Scratch {
    folder: TempDir,
    /// Its end of file is the signal.
    _remover: ChildStdin,
}

impl Scratch {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("tidegate-test-").tempdir().expect("a temporary folder");
        // Daemons may still write for a moment while they are killed.
        let script = r#"cat >/dev/null; for _ in 1 2 3 4 5; do rm -rf "$1" 2>/dev/null && break; sleep 0.2; done"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, "remover"]).arg(folder.path()).stdin(Stdio::piped()).process_group(0);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut remover = command.spawn().expect("sh starts");
        let _remover = remover.stdin.take().expect("a pipe");
        // Reaped when it ends, so that it leaves no zombie to a long test.
        std::thread::spawn(move || remover.wait());
        Self { folder, _remover }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

/// A port of loopback for a server that is about to be started, and may be
/// started again.
///
/// It stays the caller's for as long as this process lives. It is one that the
/// system hands out to nobody, so that no outgoing connection and no listener
/// of any port can take it before the server does, or while it restarts; and
/// whoever else asks for such a port, in this process or another, gets another.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    static HELD: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());
    let range = unused_ports(&local_port_range());
    let count = range.end - range.start;
    let start = u16::try_from(std::process::id() % u32::from(count)).expect("less than the count");
    for _ in 0..count {
        let port = range.start + start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % count;
        let Some(hold) = hold(port) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            HELD.lock().unwrap_or_else(PoisonError::into_inner).push(hold);
            return port;
        }
    }
    panic!("all ports of {range:?} are taken");
}

/// A name that only one process of this network can have, and that ends with
/// it; `None` if somebody has it.
fn hold(port: u16) -> Option<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("tidegate-test-port-{port}")).expect("a short name");
    UnixListener::bind_addr(&name).ok()
}

/// The longest range of ports that everybody may use and the system hands out
/// to nobody, of at most `COUNT_MAX`.
fn unused_ports(handed_out: &RangeInclusive<u16>) -> Range<u16> {
    const FIRST: u16 = 1024;
    const COUNT_MAX: u16 = 10_000;
    let (below, above) = (FIRST..*handed_out.start(), handed_out.end().saturating_add(1)..u16::MAX);
    let longest = if below.len() >= above.len() { below } else { above };
    // Its upper part: well-known servers are in the lower.
    let unused = longest.end.saturating_sub(COUNT_MAX).max(longest.start)..longest.end;
    // A system that hands out nearly all leaves us to chance.
    if unused.len() < 1_000 { 20_000..30_000 } else { unused }
}

fn local_port_range() -> RangeInclusive<u16> {
    /// Linux's own, where it does not tell.
    const DEFAULT: RangeInclusive<u16> = 32_768..=60_999;
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(last))) => first..=last,
        _ => DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_port_is_given_once() {
        let given: Vec<u16> = (0..200).map(|_| free_port()).collect();
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len());
        // As another process would find.
        assert!(given.iter().all(|port| hold(*port).is_none()));
    }

    #[test]
    fn a_port_is_never_one_of_the_systems() {
        for (handed_out, expected) in [
            (32_768..=60_999, 22_768..32_768),
            (10_000..=65_535, 1_024..10_000),
            (1_024..=40_000, 55_535..65_535),
            // Nothing is left: any will do.
            (1_024..=65_535, 20_000..30_000),
        ] {
            assert_eq!(unused_ports(&handed_out), expected, "{handed_out:?}");
        }
    }
}

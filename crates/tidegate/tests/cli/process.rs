//! Servers and commands as processes; each waits for a state, never for a
//! duration.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tidegate_testkit::daemon::free_port;

/// For a machine that is busy with everything else; nothing takes as long.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks: the machine belongs to what is waited for.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    until_seen(what, || holds().then_some(()).ok_or_else(String::new));
}

/// The same, for a look that tells what it sees instead.
pub fn until_seen(what: &str, mut look: impl FnMut() -> Result<(), String>) {
    let started = Instant::now();
    while let Err(seen) = look() {
        assert!(started.elapsed() < PATIENCE, "{what} did not come true {seen}");
        std::thread::sleep(LOOK_INTERVAL);
    }
}

pub fn tidegate(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.current_dir(directory).env_remove("RUST_LOG").env("COLUMNS", "100");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TIDEGATE_")) {
        command.env_remove(name);
    }
    command
}

/// What a finished command said.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// The output of a command that must work.
    pub fn good(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        self.out
    }
}

pub fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// For tests that count the events of objects: nobody writes statuses.
pub const QUIET: &[&str] = &["--controllers=off"];

/// A process whose lines can be waited for.
pub struct Running {
    child: Child,
    pub out: Lines,
    pub err: Lines,
}

pub struct Lines {
    receiver: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    fn of(source: impl std::io::Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(source).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { receiver, seen: Vec::new() }
    }

    pub fn next(&mut self) -> String {
        let line =
            self.receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no further line after {:#?}", self.seen));
        self.seen.push(line.clone());
        line
    }

    pub fn until(&mut self, text: &str) -> String {
        loop {
            let line = self.next();
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Everything, of a process that has ended.
    pub fn rest(&mut self) -> String {
        let unread = self.unread();
        self.seen.extend(unread);
        self.seen.join("\n")
    }

    /// What nobody has read yet, of a process that has ended.
    pub fn unread(&self) -> Vec<String> {
        std::iter::from_fn(|| self.receiver.recv_timeout(PATIENCE).ok()).collect()
    }
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err): (ChildStdout, ChildStderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self { child, out: Lines::of(out), err: Lines::of(err) }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, unless it has ended; gone when this returns.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A directory with manifests, and a server on them.
pub struct Site {
    directory: tempfile::TempDir,
    pub port: u16,
}

const MANIFESTS: &str = "\
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: robot-reads}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects:
- {kind: ServiceAccount, name: robot, namespace: default}
";

impl Site {
    pub fn new() -> Self {
        Self::in_folder("site")
    }

    /// In a folder whose name begins so.
    pub fn in_folder(name: &str) -> Self {
        let directory = tempfile::Builder::new().prefix(name).tempdir().unwrap();
        fs::create_dir(directory.path().join("manifests")).unwrap();
        let site = Self { directory, port: free_port() };
        site.define("base.yaml", MANIFESTS);
        site.product("desk-lamp", "Desk Lamp");
        site.product("chair", "Chair");
        site
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// In force from the next start on.
    pub fn define(&self, file: &str, text: &str) {
        fs::write(self.path("manifests").join(file), text).unwrap();
    }

    pub fn remove(&self, file: &str) {
        fs::remove_file(self.path("manifests").join(file)).unwrap();
    }

    pub fn product(&self, name: &str, title: &str) {
        let head = "apiVersion: catalog.gitstore.dev/v1beta1\nkind: Product\n";
        self.define(&format!("{name}.yaml"), &format!("{head}metadata: {{name: {name}}}\nspec: {{title: {title}}}\n"));
    }

    pub fn serve_command(&self) -> Command {
        let mut command = tidegate(self.directory.path());
        command.args(["serve", "--manifests", "manifests"]);
        // A variable, so that a test's own flag is stronger.
        command.env("TIDEGATE_LISTEN", format!("127.0.0.1:{}", self.port));
        command
    }

    /// Ready when it returns.
    pub fn serve(&self) -> Running {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, flags: &[&str]) -> Running {
        let mut server = Running::start(self.serve_command().args(flags));
        server.err.until("\"message\":\"ready\"");
        server
    }

    pub fn client(&self, line: &str) -> Command {
        let mut command = tidegate(self.directory.path());
        command.args(line.split(' ')).env("TIDEGATE_SERVER", format!("http://127.0.0.1:{}", self.port));
        command
    }

    pub fn say(&self, line: &str) -> Said {
        said(&mut self.client(line))
    }
}

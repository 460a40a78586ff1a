//! Git over SSH with the real `sshd` on loopback.

use std::fs::{self, File};
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::bare;
use crate::daemon::{Daemon, Scratch, free_port};

const PROGRAM: &str = "/usr/sbin/sshd";
/// Where sshd locks up its unprivileged half; the system's start makes it,
/// which a container does not have.
const PRIVILEGE_SEPARATION: &str = "/run/sshd";
const START_MAX: Duration = Duration::from_secs(120);

pub struct Sshd {
    daemon: Option<Daemon>,
    port: u16,
    scratch: Scratch,
}

impl Sshd {
    /// With one authorized key, of which `private_key` is the secret half.
    pub fn start() -> Self {
        assert!(Path::new(PROGRAM).is_file(), "no {PROGRAM}: run `cargo xtask test`, or install openssh-server");
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all(PRIVILEGE_SEPARATION).expect("the folder of sshd");
        }
        let (scratch, port) = (Scratch::new(), free_port());
        for name in ["host_key", "client_key"] {
            generate_key(&scratch.path().join(name), "");
        }
        let mut server = Self { daemon: None, port, scratch };
        server.authorize(&server.read("client_key.pub"));
        let path = |name: &str| server.scratch.path().join(name).display().to_string();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             MaxStartups 100\nMaxSessions 100\nPermitUserEnvironment no\nLogLevel VERBOSE\n",
            path("host_key"),
            path("authorized_keys"),
        );
        fs::write(server.scratch.path().join("sshd_config"), config).expect("a configuration");
        server.up();
        server
    }

    /// Answers again after `down`.
    pub fn up(&mut self) {
        let (folder, port) = (self.scratch.path(), self.port);
        let config = folder.join("sshd_config").display().to_string();
        let args = ["-D", "-e", "-f", &config].map(str::to_owned);
        let daemon = Daemon::start(Path::new(PROGRAM), folder, &args);
        daemon.wait_for("open port", START_MAX, || TcpStream::connect(("127.0.0.1", port)).ok());
        self.daemon = Some(daemon);
    }

    /// Nobody listens any more.
    pub fn down(&mut self) {
        self.daemon = None;
    }

    /// An empty repository; its place on disk.
    pub fn create(&self, name: &str) -> PathBuf {
        bare::create(self.scratch.path(), name)
    }

    /// Whoever runs the tests is the user.
    pub fn url(&self, name: &str) -> String {
        let path = self.scratch.path().join(name);
        format!("ssh://{}@127.0.0.1:{}{}", user(), self.port, path.display())
    }

    /// The authorized key in OpenSSH's format, without a passphrase.
    pub fn private_key(&self) -> String {
        self.read("client_key")
    }

    pub fn private_key_path(&self) -> PathBuf {
        self.scratch.path().join("client_key")
    }

    /// The line by which clients know this server.
    pub fn known_hosts(&self) -> String {
        let public = self.read("host_key.pub");
        let mut words = public.split_whitespace();
        let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        format!("[127.0.0.1]:{} {kind} {key}\n", self.port)
    }

    /// Lets the owner of one more key in.
    pub fn authorize(&self, public_key: &str) {
        let path = self.scratch.path().join("authorized_keys");
        let mut file = File::options().create(true).append(true).open(path).expect("the authorized keys");
        writeln!(file, "{}", public_key.trim_end()).expect("one more key");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.scratch.path().join(name)).expect("a key")
    }
}

/// A key in `path`, its public half in `path.pub`.
pub fn generate_key(path: &Path, passphrase: &str) {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-C", "test", "-N", passphrase, "-f"]).arg(path);
    assert!(command.status().expect("ssh-keygen starts").success(), "ssh-keygen failed");
}

fn user() -> String {
    let output = Command::new("id").arg("-un").output().expect("id starts");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

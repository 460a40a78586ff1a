//! Git's conversation with a remote host, for a fetch as for a push.
//!
//! Invariants: credentials travel in the environment of git alone, or in files
//! of a directory that nobody else may enter and that goes with the call; they
//! are offered to the one host that they are for, over the one transport that
//! its address names; a host that stalls, drips or floods ends with an error.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

use crate::credentials::{Access, Credentials};
use crate::idle::until_idle;
use crate::program::Program;
use crate::remote_error::RemoteError;
use crate::remote_url::RemoteUrl;

/// Under the program's home.
const FOLDER: &str = "credentials";
/// Slower than this for the whole stall time is a stall.
const RATE_BYTES_PER_S_MIN: u64 = 1_000;
/// A host that does not even shake hands, over SSH.
const SSH_CONNECT_S_MAX: u64 = 20;
/// Of what git prints; a host can make it print for ever.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// A blob beyond it is not held in memory.
const BIG_FILE: &str = "16m";
/// `ulimit -f` counts in these.
const BLOCK_BYTES: u64 = 512;

/// `$0` is the limit. The kernel ends whoever writes a larger file: a pack is
/// one file, and git has no limit of its own for a fetch.
const LIMITED: &str = "ulimit -f \"$0\" && exec \"$@\"";
/// Constant, and run by git's shell: the values are in the environment.
const HELPER: &str = "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \
                      \"$TIDEGATE_REMOTE_USERNAME\" \"$TIDEGATE_REMOTE_PASSWORD\"; }; f";
const ASKPASS: &str = "#!/bin/sh\nprintf '%s\\n' \"$TIDEGATE_REMOTE_PASSWORD\"\n";
const USERNAME_VARIABLE: &str = "TIDEGATE_REMOTE_USERNAME";
const PASSWORD_VARIABLE: &str = "TIDEGATE_REMOTE_PASSWORD";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteLimits {
    /// For a whole fetch or push.
    pub time_max: Duration,
    /// Without progress.
    pub stall_max: Duration,
    /// Of one pack.
    pub pack_bytes_max: u64,
}

impl Default for RemoteLimits {
    fn default() -> Self {
        Self { time_max: Duration::from_secs(600), stall_max: Duration::from_secs(60), pack_bytes_max: 1 << 30 }
    }
}

#[derive(Clone, Debug)]
pub struct Remote {
    pub url: RemoteUrl,
    pub access: Access,
    pub limits: RemoteLimits,
}

/// A call that came to its own end, good or bad; secrets are blotted out.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Remote {
    /// Runs `git <command> <args>` on the bare repository `dir`. The address belongs into `args`,
    /// after `--`.
    pub async fn call(
        &self,
        program: &Program,
        dir: &Path,
        command: &'static str,
        args: &[&str],
    ) -> Result<Ended, RemoteError> {
        let failed = |source| RemoteError::Io { command, source };
        let files = Files::write(program, &self.access).map_err(failed)?;
        let mut git = self.command(program, dir, &files);
        git.arg(command).args(args);
        let child = Group::spawn(&mut git).map_err(failed)?;
        let RemoteLimits { time_max, stall_max, .. } = self.limits;
        let ended = tokio::time::timeout(time_max, child.finish(stall_max)).await;
        let finished = ended.map_err(|_| RemoteError::TooSlow { seconds: time_max.as_secs() })?.map_err(failed)?;
        let Finished { status, stdout, stderr, has_stalled } = finished;
        // What it has printed until then may say why.
        if has_stalled && stderr.is_empty() {
            return Err(RemoteError::Stalled { seconds: stall_max.as_secs() });
        }
        Ok(Ended { status, stdout: self.blot(&files, &stdout), stderr: self.blot(&files, &stderr) })
    }

    fn command(&self, program: &Program, dir: &Path, files: &Files) -> Command {
        let mut command = program.isolated(Path::new("sh"), dir);
        let blocks = (self.limits.pack_bytes_max / BLOCK_BYTES).max(1);
        command.args(["-c", LIMITED, &blocks.to_string()]).arg(&program.git);
        // Where it runs, not where that was: a repository that is put away during
        // a fetch takes it along, and one of the same name gets nothing of it.
        command.env("GIT_DIR", ".").env("GIT_ALLOW_PROTOCOL", self.url.scheme().name());
        let mut settings = vec![
            ("http.lowSpeedLimit".to_owned(), RATE_BYTES_PER_S_MIN.to_string()),
            ("http.lowSpeedTime".to_owned(), self.limits.stall_max.as_secs().max(1).to_string()),
            ("core.bigFileThreshold".to_owned(), BIG_FILE.to_owned()),
        ];
        let origin = self.url.origin();
        match &self.access.credentials {
            Credentials::Anonymous => {}
            Credentials::Basic { username, password } => {
                // Asked again for each host: one that it redirects to gets none.
                settings.push((format!("credential.{origin}.helper"), HELPER.to_owned()));
                command.env(USERNAME_VARIABLE, username.reveal()).env(PASSWORD_VARIABLE, password.reveal());
            }
            Credentials::Bearer(token) => {
                // A header goes wherever a request goes.
                settings.push(("http.followRedirects".to_owned(), "false".to_owned()));
                let header = format!("Authorization: Bearer {}", token.reveal());
                settings.push((format!("http.{origin}.extraHeader"), header));
            }
            Credentials::Ssh { passphrase, .. } => {
                command.env("GIT_SSH_COMMAND", files.ssh_command(self.limits.stall_max, passphrase.is_some()));
                command.env("GIT_SSH_VARIANT", "ssh");
                if let Some(passphrase) = passphrase {
                    command.env("SSH_ASKPASS", files.path(ASKPASS_FILE)).env("SSH_ASKPASS_REQUIRE", "force");
                    command.env(PASSWORD_VARIABLE, passphrase.reveal());
                }
            }
        }
        if self.access.ca.is_some() {
            command.env("GIT_SSL_CAINFO", files.path(CA_FILE));
        }
        command.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (at, (key, value)) in settings.into_iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command
    }

    /// A host may repeat what we sent.
    fn blot(&self, files: &Files, text: &str) -> String {
        let folder = files.folder.path().display().to_string();
        let text = text.replace(&folder, "secret");
        self.access.secrets().into_iter().fold(text, |text, secret| text.replace(secret, "***"))
    }

    /// Removes what calls of a process that was killed left behind. Nobody
    /// else may be using `program`'s home.
    pub fn sweep(program: &Program) -> io::Result<()> {
        match std::fs::remove_dir_all(program.home.join(FOLDER)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

const KEY_FILE: &str = "key";
const KNOWN_HOSTS_FILE: &str = "known_hosts";
const ASKPASS_FILE: &str = "askpass";
const CA_FILE: &str = "ca.crt";

/// What git and ssh will only read from files; gone when dropped.
struct Files {
    folder: TempDir,
}

impl Files {
    fn write(program: &Program, access: &Access) -> io::Result<Self> {
        let parent = program.home.join(FOLDER);
        std::fs::create_dir_all(&parent)?;
        let files = Self { folder: tempfile::Builder::new().tempdir_in(parent)? };
        if let Credentials::Ssh { private_key, passphrase, known_hosts } = &access.credentials {
            files.put(KEY_FILE, private_key.reveal(), 0o600)?;
            files.put(KNOWN_HOSTS_FILE, known_hosts, 0o600)?;
            if passphrase.is_some() {
                files.put(ASKPASS_FILE, ASKPASS, 0o700)?;
            }
        }
        if let Some(ca) = &access.ca {
            files.put(CA_FILE, ca, 0o600)?;
        }
        Ok(files)
    }

    fn put(&self, name: &str, text: &str, mode: u32) -> io::Result<()> {
        use std::io::Write;
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(self.path(name));
        file?.write_all(text.as_bytes())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Nothing of the user's or the system's SSH set-up counts.
    fn ssh_command(&self, stall: Duration, has_passphrase: bool) -> OsString {
        let alive_s = (stall.as_secs() / 3).max(1);
        let options = [
            "BatchMode=".to_owned() + if has_passphrase { "no" } else { "yes" },
            "IdentitiesOnly=yes".to_owned(),
            "PreferredAuthentications=publickey".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            format!("UserKnownHostsFile={}", ssh_quoted(&self.path(KNOWN_HOSTS_FILE))),
            format!("IdentityFile={}", ssh_quoted(&self.path(KEY_FILE))),
            format!("ConnectTimeout={SSH_CONNECT_S_MAX}"),
            format!("ServerAliveInterval={alive_s}"),
            "ServerAliveCountMax=3".to_owned(),
        ];
        let options = options.iter().map(|option| format!(" -o {}", shell_quoted(option)));
        OsString::from(format!("ssh -F none{}", options.collect::<String>()))
    }
}

/// For ssh: quotes keep spaces together, `%` begins a token.
fn ssh_quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('%', "%%").replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Git and the children that it talks to the host with. Dropping it before its
/// end ends them all: git alone would leave a child waiting for a silent host.
struct Group {
    child: Child,
    leader: Option<Pid>,
}

impl Group {
    fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).stdin(Stdio::null()).spawn()?;
        let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { child, leader })
    }

    /// Those that do nothing any more for `idle_max` are ended.
    async fn finish(mut self, idle_max: Duration) -> io::Result<Finished> {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let mut printed = pin!(async { tokio::try_join!(tail(stdout), tail(stderr)) });
        let leader = self.leader;
        let idle = async {
            match leader {
                Some(leader) => until_idle(leader, idle_max).await,
                None => std::future::pending().await,
            }
        };
        let (printed, has_stalled) = tokio::select! {
            printed = &mut printed => (printed, false),
            () = idle => {
                self.kill();
                (printed.await, true)
            }
        };
        let (stdout, stderr) = printed?;
        let status = self.child.wait().await?;
        self.leader = None;
        Ok(Finished { status, stdout, stderr, has_stalled })
    }

    fn kill(&self) {
        if let Some(leader) = self.leader {
            // Not reaped yet, so the number is still theirs.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// What came of a group.
struct Finished {
    status: ExitStatus,
    stdout: String,
    stderr: String,
    has_stalled: bool,
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The end of what is printed, whatever its length.
async fn tail(source: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let Some(mut source) = source else { return Ok(String::new()) };
    let (mut kept, mut piece) = (Vec::new(), vec![0; 8 << 10]);
    loop {
        let count = source.read(&mut piece).await?;
        if count == 0 {
            break;
        }
        kept.extend_from_slice(&piece[..count]);
        if kept.len() > 2 * OUTPUT_BYTES_MAX {
            kept.drain(..kept.len() - OUTPUT_BYTES_MAX);
        }
    }
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::credentials::Secret;
    use crate::remote_url::PlainHttp;

    const SECRET: &str = "s3cret-value";

    /// The arguments and the environment of a process.
    fn told(command: &Command) -> (Vec<&OsStr>, Vec<&OsStr>) {
        let command = command.as_std();
        (command.get_args().collect(), command.get_envs().filter_map(|(_, value)| value).collect())
    }

    fn remote(url: &str, credentials: Credentials) -> Remote {
        let url = RemoteUrl::parse(url, PlainHttp::LoopbackOnly).unwrap();
        Remote { url, access: Access { credentials, ca: None }, limits: RemoteLimits::default() }
    }

    #[test]
    fn credentials_are_in_no_argument_and_only_for_their_host() {
        let home = tempfile::tempdir().unwrap();
        let program = Program { git: "git".into(), search_path: "/bin".into(), home: home.path().to_owned() };
        let secret = || Secret::new(SECRET);
        for credentials in [
            Credentials::Basic { username: Secret::new("ada"), password: secret() },
            Credentials::Bearer(secret()),
            Credentials::Ssh { private_key: secret(), passphrase: Some(secret()), known_hosts: "h".into() },
        ] {
            let url = if matches!(credentials, Credentials::Ssh { .. }) { "git@h:a" } else { "https://h/a" };
            let remote = remote(url, credentials);
            let files = Files::write(&program, &remote.access).unwrap();
            let command = remote.command(&program, home.path(), &files);
            let (args, values) = told(&command);
            assert!(!args.iter().any(|arg| arg.to_string_lossy().contains(SECRET)), "{args:?}");
            assert!(values.iter().any(|value| value.to_string_lossy().contains(SECRET)), "{values:?}");
            assert_eq!(remote.blot(&files, &format!("no {SECRET} here")), "no *** here");
            let folder = files.folder.path().to_owned();
            drop(files);
            assert!(!folder.exists());
        }
        Remote::sweep(&program).unwrap();
        Remote::sweep(&program).unwrap();
        assert!(!home.path().join(FOLDER).exists());
    }

    #[tokio::test]
    async fn a_git_that_waits_for_itself_is_ended() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let git = home.path().join("git");
        std::fs::write(&git, "#!/bin/sh\necho $$ > pid; sleep 1000 & wait\n").unwrap();
        std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o700)).unwrap();
        let search_path = std::env::var_os("PATH").unwrap();
        let program = Program { git, search_path, home: home.path().to_owned() };
        let mut remote = remote("https://h/a", Credentials::Anonymous);
        // Long enough for the start of a shell on a busy machine.
        remote.limits.stall_max = Duration::from_secs(3);
        let error = remote.call(&program, home.path(), "push", &[]).await.unwrap_err();
        assert!(matches!(error, RemoteError::Stalled { seconds: 3 }), "{error}");
        let pid = std::fs::read_to_string(home.path().join("pid")).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists());
        std::fs::write(&program.git, "#!/bin/sh\necho 'remote: no room' >&2; sleep 1000 & wait\n").unwrap();
        let ended = remote.call(&program, home.path(), "push", &[]).await.unwrap();
        assert!(!ended.status.success() && ended.stderr == "remote: no room\n", "{ended:?}");
    }

    #[test]
    fn paths_are_quoted_for_ssh_and_for_the_shell() {
        let quoted = ssh_quoted(Path::new("/a b/100%/it's\"x"));
        assert_eq!(quoted, "\"/a b/100%%/it's\\\"x\"");
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
    }

    #[tokio::test]
    async fn only_the_end_of_endless_output_is_kept() {
        let text = "x".repeat(10 * OUTPUT_BYTES_MAX) + "the end";
        let kept = tail(Some(text.as_bytes())).await.unwrap();
        assert!(kept.ends_with("the end") && kept.len() <= 2 * OUTPUT_BYTES_MAX);
    }
}

//! What tests need of the system itself.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

/// Where Debian puts it; it is not in everybody's search path.
const SSHD: &str = "/usr/sbin/sshd";
const REMEDY: &str = "the tests of Git over SSH need sshd: run `apt-get install openssh-server` as root";

/// Tests serve Git over SSH with the real server.
pub fn ensure_sshd() -> Result<()> {
    if Path::new(SSHD).is_file() {
        return Ok(());
    }
    ensure!(rustix::process::geteuid().is_root(), "{REMEDY}");
    eprintln!("installing openssh-server, which tests serve Git with …");
    // The list of packages may be old, or not there at all.
    ensure!(apt(&["install"]) || (apt(&["update"]) && apt(&["install"])), "{REMEDY}; apt-get failed, see above");
    ensure!(Path::new(SSHD).is_file(), "openssh-server is installed, but there is no {SSHD}");
    Ok(())
}

fn apt(arguments: &[&str]) -> bool {
    let mut apt = Command::new("apt-get");
    apt.args(["-q", "-y", "--no-install-recommends"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    if arguments.contains(&"install") {
        apt.arg("openssh-server");
    }
    apt.status().is_ok_and(|status| status.success())
}

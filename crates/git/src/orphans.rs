//! Moves of refs whose server was killed.
//!
//! One that has been told to moves its branch when it comes to it, and the
//! server that told it is not there to project it. So they are ended before a
//! later server looks at the branches.

use std::io;
use std::path::Path;

/// Of repositories under `folder`, which is a whole path that nobody else
/// serves from. Returns how many were ended.
#[cfg(target_os = "linux")]
pub async fn end_orphans(folder: &Path) -> io::Result<usize> {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    let mut ended = 0;
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else { continue };
        // Held before it is looked at: its number may be another's by then.
        let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        let process = Path::new("/proc").join(&name);
        if !std::fs::read(process.join("cmdline")).is_ok_and(|line| moves_refs(&line, folder)) {
            continue;
        }
        pidfd_send_signal(&held, Signal::KILL)?;
        wait_until_gone(&process).await?;
        ended += 1;
    }
    Ok(ended)
}

/// Elsewhere there is no such list: the locks that they hold are waited for.
#[cfg(not(target_os = "linux"))]
pub async fn end_orphans(_folder: &Path) -> io::Result<usize> {
    Ok(0)
}

/// `git … --git-dir FOLDER/… update-ref …`, as we start it.
#[cfg(target_os = "linux")]
fn moves_refs(line: &[u8], folder: &Path) -> bool {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).filter(|word| !word.is_empty()).collect();
    let is_in_folder = |word: &[u8]| Path::new(OsStr::from_bytes(word)).starts_with(folder);
    words.contains(&&b"update-ref"[..]) && words.into_iter().any(is_in_folder)
}

/// Or until only its parent has still to take note of it.
#[cfg(target_os = "linux")]
async fn wait_until_gone(process: &Path) -> io::Result<()> {
    use std::time::Duration;

    /// A killed process goes as soon as the system comes to it.
    const TURNS_MAX: usize = 1_000;
    const TURN: Duration = Duration::from_millis(10);
    for _ in 0..TURNS_MAX {
        let Ok(stat) = std::fs::read_to_string(process.join("stat")) else { return Ok(()) };
        // `PID (NAME) STATE …`, where a name may hold anything.
        if stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z')) {
            return Ok(());
        }
        tokio::time::sleep(TURN).await;
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("{} does not end", process.display())))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_ours() {
        let folder = Path::new("/data/repos");
        for (line, expected) in [
            ("git\0-c\0a=b\0--git-dir\0/data/repos/system/control.git\0update-ref\0--stdin\0-z\0", true),
            ("git\0--git-dir\0/data/repository/system/control.git\0update-ref\0--stdin\0", false),
            ("git\0upload-pack\0--stateless-rpc\0/data/repos/system/control.git\0", false),
            ("tail\0-f\0update-ref\0/tmp/x\0", false),
            ("", false),
        ] {
            assert_eq!(moves_refs(line.as_bytes(), folder), expected, "{line:?}");
        }
    }
}

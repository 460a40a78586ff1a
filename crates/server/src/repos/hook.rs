//! What git's hooks and the server say to each other.
//!
//! Git calls `tidegate hook pre-receive` before a ref moves and
//! `post-receive` after. The hook decides nothing: it hands over what git told
//! it, prints the answer for the pusher, and ends as it is told. It is called
//! by way of two scripts that the server writes at each start, so that they
//! name the program that runs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_git::Fsck;

use super::ReposError;
use super::id::RepositoryId;
use super::pushes::PushId;

/// The hook's environment: where the server listens, and who it is about.
pub const SOCKET_VARIABLE: &str = "TIDEGATE_HOOK_SOCKET";
pub const PUSH_VARIABLE: &str = "TIDEGATE_HOOK_PUSH";
pub const REPOSITORY_VARIABLE: &str = "TIDEGATE_HOOK_REPOSITORY";
/// Set if git has not looked at the objects. It is git that carries it, so that
/// a server that is started in the middle of a push knows.
pub const FSCK_VARIABLE: &str = "TIDEGATE_HOOK_FSCK";

const FOLDER: &str = "hooks";
const SOCKET: &str = "hook.sock";

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Hook {
    PreReceive,
    PostReceive,
}

impl Hook {
    const ALL: [Self; 2] = [Self::PreReceive, Self::PostReceive];

    pub fn name(self) -> &'static str {
        match self {
            Self::PreReceive => "pre-receive",
            Self::PostReceive => "post-receive",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HookCall {
    pub hook: Hook,
    pub repository: String,
    /// Which push it is, as its git was told.
    pub push: String,
    pub updates: Vec<RefUpdate>,
    /// Whether the objects still have to be looked at.
    pub owes_fsck: bool,
    /// Where the objects of the push are while it is checked.
    pub object_directory: Option<String>,
    pub alternates: Option<String>,
}

/// As git writes it to a hook: `old new name`, zeros for none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefUpdate {
    pub old: String,
    pub new: String,
    pub name: String,
}

impl RefUpdate {
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        Some(Self { old: words.next()?, new: words.next()?, name: words.next()? })
    }

    /// A ref that makes one object pass for another. To delete it does no harm.
    pub fn replaces(&self) -> bool {
        self.name.starts_with("refs/replace/") && self.new.bytes().any(|digit| digit != b'0')
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HookAnswer {
    pub accepted: bool,
    /// For the pusher's terminal.
    pub lines: Vec<String>,
}

/// The scripts and the socket in the data directory.
#[derive(Clone, Debug)]
pub(super) struct Hooks {
    folder: PathBuf,
    socket: PathBuf,
}

impl Hooks {
    pub fn install(data_dir: &Path, program: &Path) -> Result<Self, ReposError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ReposError::Hooks { path, source }
        };
        let folder = data_dir.join(FOLDER);
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        for hook in Hook::ALL {
            write_script(&folder, hook, program).map_err(failed(&folder))?;
        }
        Ok(Self { folder, socket: data_dir.join(SOCKET) })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// For git's `-c`.
    pub fn setting(&self) -> OsString {
        let mut setting = OsString::from("core.hooksPath=");
        setting.push(&self.folder);
        setting
    }

    pub fn environment(&self, id: &RepositoryId, push: Option<PushId>, fsck: Fsck) -> Vec<(&'static str, OsString)> {
        let push = push.map(|push| (PUSH_VARIABLE, push.to_string().into()));
        let fsck = (fsck == Fsck::Apart).then(|| (FSCK_VARIABLE, "1".into()));
        let others = [(SOCKET_VARIABLE, self.socket.clone().into()), (REPOSITORY_VARIABLE, id.to_string().into())];
        others.into_iter().chain(push).chain(fsck).collect()
    }
}

fn write_script(folder: &Path, hook: Hook, program: &Path) -> io::Result<()> {
    // Put in place in one step: a push of a server that was killed may still be
    // under way, and git takes the half of a script for a consent.
    let (path, draft) = (folder.join(hook.name()), folder.join(format!(".{}", hook.name())));
    fs::write(&draft, script(hook, &program.to_string_lossy()))?;
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o700))?;
    fs::rename(draft, path)
}

fn script(hook: Hook, program: &str) -> String {
    let quoted = program.replace('\'', r"'\''");
    format!("#!/bin/sh\n# Written by tidegate at each start.\nexec '{quoted}' hook {}\n", hook.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_any_name_is_called() {
        let text = script(Hook::PreReceive, "/a b/it's");
        assert!(text.ends_with("exec '/a b/it'\\''s' hook pre-receive\n"), "{text}");
    }

    /// As a push sees it that began under a server that was killed since.
    #[test]
    fn a_script_is_never_seen_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let hooks = Hooks::install(dir.path(), Path::new("/old")).unwrap();
        let path = hooks.folder.join(Hook::PreReceive.name());
        let mut opened = fs::File::open(&path).unwrap();
        Hooks::install(dir.path(), Path::new("/new")).unwrap();
        let mut seen = String::new();
        io::Read::read_to_string(&mut opened, &mut seen).unwrap();
        assert_eq!(seen, script(Hook::PreReceive, "/old"));
        assert_eq!(fs::read_to_string(&path).unwrap(), script(Hook::PreReceive, "/new"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn updates() {
        let update = RefUpdate::parse("a b refs/heads/x y").unwrap();
        assert_eq!((&*update.old, &*update.new, &*update.name), ("a", "b", "refs/heads/x y"));
        assert_eq!(RefUpdate::parse("a b"), None);
    }
}

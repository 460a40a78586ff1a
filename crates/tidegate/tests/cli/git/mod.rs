//! Real `git` against a real server: what a push does, and what it may not.

mod backup;
mod definitions;
mod deleted;
mod fsck;
mod narrowing;
mod origin;
mod push;
mod race;
mod recovery;
mod refusals;
mod remote;
mod storm;
mod superseded;
mod transport;
mod unruly;

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::process::{Running, Said, Site, said};

pub const CONTROL: &str = "system/control";

/// Git that knows nothing of whoever runs the tests.
pub fn git(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    for (name, value) in [
        ("HOME", "/nonexistent"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_AUTHOR_NAME", "Ada"),
        ("GIT_AUTHOR_EMAIL", "ada@example.com"),
        ("GIT_COMMITTER_NAME", "Ada"),
        ("GIT_COMMITTER_EMAIL", "ada@example.com"),
    ] {
        command.env(name, value);
    }
    command
}

/// A server with a clone of the control repository.
pub struct Hosted {
    pub site: Site,
    pub server: Running,
    pub tree: Tree,
}

impl Hosted {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(flags: &[&str]) -> Self {
        Self::start_at(Site::new(), flags)
    }

    pub fn start_at(site: Site, flags: &[&str]) -> Self {
        let server = site.serve_with(flags);
        let tree = Tree::clone(&site, CONTROL, "control");
        Self { site, server, tree }
    }

    pub fn bare(&self) -> PathBuf {
        self.site.path("tidegate-data/repos/system/control.git")
    }

    /// The field of an object, as text.
    pub fn field(&self, what: &str, pointer: &str) -> String {
        let text = self.site.say(&format!("get {what} -o json")).good();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        value.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {text}")).to_string().replace('"', "")
    }
}

/// A work tree with the server as its origin.
pub struct Tree {
    pub dir: PathBuf,
}

impl Tree {
    pub fn clone(site: &Site, repository: &str, name: &str) -> Self {
        said(&mut git(&site.path(""), &["clone", "-q", &url(site, repository, &admin(site)), name])).good();
        Self { dir: site.path(name) }
    }

    pub fn git(&self, args: &[&str]) -> Said {
        said(&mut git(&self.dir, args))
    }

    pub fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub fn commit(&self) -> &Self {
        self.git(&["add", "-A"]).good();
        self.git(&["commit", "-q", "-m", "a change"]).good();
        self
    }

    /// A commit of exactly these entries (as `git mktree` takes them), which
    /// no work tree has to hold.
    pub fn commit_tree(&self, entries: &str) {
        let tree = self.fed(&["mktree"], entries);
        let commit = self.git(&["commit-tree", "-p", "HEAD", "-m", "a tree", &tree]).good();
        self.git(&["update-ref", "HEAD", commit.trim()]).good();
    }

    /// What git makes of `input`.
    pub fn fed(&self, args: &[&str], input: &str) -> String {
        let mut command = git(&self.dir, args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"]).good().trim().to_owned()
    }

    pub fn push(&self, args: &[&str]) -> Said {
        self.git(&[&["push", "origin", "HEAD:main"], args].concat())
    }

    /// What the pusher of a good push reads.
    pub fn pushed(&self) -> String {
        let said = self.push(&[]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.err
    }

    /// What the pusher of a bad push reads.
    pub fn refused(&self) -> String {
        let said = self.push(&[]);
        assert_eq!(said.code, Some(1), "{}", said.err);
        said.err
    }

    /// An entry that no file system has to hold.
    pub fn entry(&self, mode: &str, id: &str, path: &[u8]) {
        let mut command = git(&self.dir, &["update-index", "--add", "--cacheinfo"]);
        let mut argument = format!("{mode},{id},").into_bytes();
        argument.extend(path);
        said(command.arg(std::ffi::OsStr::from_bytes(&argument))).good();
        self.git(&["commit", "-q", "-m", "an entry"]).good();
    }
}

pub fn admin(site: &Site) -> String {
    fs::read_to_string(site.path("tidegate-data/admin.token")).unwrap().trim().to_owned()
}

pub fn url(site: &Site, repository: &str, token: &str) -> String {
    format!("http://anybody:{token}@127.0.0.1:{}/git/{repository}.git", site.port)
}

pub const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, maximum: 100}}}
";

pub fn widget(name: &str, size: u32) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  size: {size}\n"
    )
}

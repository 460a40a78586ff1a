//! Who may talk to the control plane, each by a token.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub name: String,
    pub groups: Vec<String>,
}

impl User {
    /// Somebody without any permission.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), groups: Vec::new() }
    }

    #[must_use]
    pub fn in_group(mut self, group: &str) -> Self {
        self.groups.push(group.into());
        self
    }

    pub(super) fn token(&self) -> String {
        format!("token-of-{}", file_name(&self.name))
    }
}

/// `token,user,uid,"group,group"`, a line each.
pub(super) fn write_tokens(folder: &Path, users: &[User]) {
    let line = |user: &User| {
        let User { name, groups } = user;
        format!("{},{name},uid-of-{},\"{}\"\n", user.token(), file_name(name), groups.join(","))
    };
    let text: String = users.iter().map(line).collect();
    fs::write(folder.join("tokens.csv"), text).expect("the tokens can be written");
}

/// A kubeconfig for whoever has `token`.
pub(super) fn write_kubeconfig(folder: &Path, name: &str, token: &str, url: &str, ca: &Path) -> PathBuf {
    let path = folder.join(format!("{}.kubeconfig", file_name(name)));
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         clusters:\n- name: test\n  cluster: {{server: '{url}', certificate-authority: '{}'}}\n\
         users:\n- name: test\n  user: {{token: '{token}'}}\n\
         contexts:\n- name: test\n  context: {{cluster: test, user: test, namespace: default}}\n",
        ca.display(),
    );
    // Renamed when complete: a kubectl of another test may be reading it.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let new = path.with_extension(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
    fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).expect("a kubeconfig can be written");
    path
}

/// `system:kube-controller-manager` is no name for a file.
fn file_name(name: &str) -> String {
    name.replace([':', '/'], "-")
}

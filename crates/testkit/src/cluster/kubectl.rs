//! kubectl as one of the cluster's users.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tidegate_assets::Program;

use super::{ADMIN, Cluster, find};

/// A moment in fact; the machine may be busy.
const GRANT_MAX: Duration = Duration::from_secs(120);

pub(super) struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: PathBuf,
}

impl Kubectl {
    /// What it prints, or what it complains about.
    pub fn run(&self, args: &[&str], stdin: &str) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        // Nothing of the user's own set-up: its configuration, its caches.
        command.env_remove("KUBECONFIG").env("HOME", &self.folder).current_dir(&self.folder);
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl starts");
        let mut input = child.stdin.take().expect("a pipe");
        let text = stdin.to_owned();
        // Written by another thread: kubectl may answer before it has read all,
        // or not read at all.
        let writer = std::thread::spawn(move || {
            let _ = input.write_all(text.as_bytes());
        });
        let output = child.wait_with_output().expect("kubectl ends");
        writer.join().expect("the writer ends");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}

impl Cluster {
    /// What kubectl prints, or what it complains about.
    pub fn kubectl(&self, user: &str, args: &[&str], stdin: &str) -> Result<String, String> {
        self.kubectl_for(user).run(args, stdin)
    }

    /// kubectl as `admin`, which must succeed.
    pub fn admin(&self, args: &[&str]) -> String {
        self.must(ADMIN, args, "")
    }

    /// Applies manifests as `user`, which must succeed.
    pub fn apply(&self, user: &str, manifests: &str) -> String {
        self.must(user, &["apply", "--server-side", "--force-conflicts", "-f", "-"], manifests)
    }

    /// Lets `user` do in all namespaces what a ClusterRole allows, such as
    /// `cluster-admin`, or `edit` with a controller manager. In force when it returns: the API server
    /// learns of bindings in the order in which they were made, so the last of
    /// these proves the first.
    pub fn grant(&self, user: &str, cluster_role: &str) {
        self.wait_for_rules(cluster_role);
        let name = format!("{cluster_role}-{user}").replace(':', "-");
        let proof = format!("/granted/{name}");
        let bind = |name: &str, role: &str| {
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
            })
        };
        let proven = format!("proof-{name}");
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": proven},
            "rules": [{"nonResourceURLs": [proof], "verbs": ["get"]}],
        });
        for object in [bind(&name, cluster_role), role, bind(&proven, &proven)] {
            self.apply(ADMIN, &object.to_string());
        }
        let kubectl = self.kubectl_for(user);
        let is_granted = || kubectl.run(&["auth", "can-i", "get", &proof], "").ok();
        self.apiserver.wait_for("permission", GRANT_MAX, is_granted);
    }

    /// `admin`, `edit` and `view` are filled by a controller.
    fn wait_for_rules(&self, cluster_role: &str) {
        let args = ["get", "clusterrole", cluster_role, "-o", "jsonpath={.rules}"];
        let has_rules = || (!self.admin(&args).is_empty()).then_some(());
        let is_hopeless = self.controller_manager.is_none() && has_rules().is_none();
        assert!(!is_hopeless, "ClusterRole {cluster_role} has no rules without Options::controller_manager");
        self.apiserver.wait_for("rules of the ClusterRole", GRANT_MAX, has_rules);
    }

    /// A token of a service account, which is made if it is not there.
    pub fn service_account_token(&self, namespace: &str, name: &str) -> String {
        self.apply(
            ADMIN,
            &format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: {namespace}}}\n"),
        );
        self.admin(&["create", "token", "--namespace", namespace, name]).trim().to_owned()
    }

    fn must(&self, user: &str, args: &[&str], stdin: &str) -> String {
        let answer = self.kubectl(user, args, stdin);
        answer.unwrap_or_else(|complaint| panic!("kubectl {args:?} as {user}: {complaint}\n{stdin}"))
    }

    pub(super) fn kubectl_for(&self, user: &str) -> Kubectl {
        Kubectl {
            program: find(&self.places, Program::Kubectl),
            kubeconfig: self.kubeconfig(user),
            folder: self.scratch.path().to_owned(),
        }
    }
}

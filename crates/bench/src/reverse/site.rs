//! A control plane, a Git server, and namespaces that are mirrored.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;
use tidegate_testkit::bare;
use tidegate_testkit::cluster::{ADMIN, ALICE, BOB, Cluster, Options};
use tidegate_testkit::git_http::{GitHttp, PASSWORD, USERNAME};

use super::PATIENCE;
use super::api::Api;

const POLL: Duration = Duration::from_millis(20);

pub struct Site {
    pub api: Api,
    pub cluster: Cluster,
    pub git: GitHttp,
    pub binary: PathBuf,
}

/// A namespace whose ConfigMaps go to a repository of its own.
pub struct Place {
    pub namespace: String,
    pub repository: PathBuf,
}

impl Site {
    pub fn start(binary: &Path) -> anyhow::Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let cluster = Cluster::start(Options::default());
        let printed = Command::new(binary).args(["reverse", "install", "--print", "--crds-only"]).output()?;
        ensure!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        cluster.apply(ADMIN, &String::from_utf8(printed.stdout)?);
        cluster.admin(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
        for person in [ALICE, BOB] {
            cluster.grant(person, "cluster-admin");
        }
        let api = Api::new(&cluster, cluster.token(ADMIN))?;
        Ok(Self { api, cluster, git: GitHttp::start(), binary: binary.to_owned() })
    }

    pub fn place(&self, prefix: &str) -> anyhow::Result<Place> {
        let namespace = self.cluster.namespace(prefix);
        let repository = self.git.create(&format!("{namespace}.git"));
        // No host packs its repositories while a push waits for it.
        bare::git(&repository, &["config", "receive.autogc", "false"]);
        let of = |kind: &str, name: &str, spec: serde_json::Value| {
            let metadata = json!({"name": name, "namespace": namespace});
            json!({"apiVersion": "configbutler.ai/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
        };
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git", "namespace": namespace},
            "stringData": {"username": USERNAME, "password": PASSWORD},
        });
        let url = self.git.url(&format!("{namespace}.git"));
        let repo = json!({"repoUrl": url, "allowedBranches": ["main"], "secretRef": {"name": "git"}});
        let live = json!({"repoRef": {"name": "repo"}, "branch": "main", "baseFolder": "live"});
        let rule = json!({"destinationRef": {"name": "live"}, "rules": [{"resources": ["configmaps"]}]});
        for object in [
            secret,
            of("GitRepoConfig", "repo", repo),
            of("GitDestination", "live", live),
            of("WatchRule", "maps", rule),
        ] {
            self.cluster.apply(ADMIN, &object.to_string());
        }
        Ok(Place { namespace, repository })
    }

    /// Until the destination says that Git has everything.
    pub async fn wait_mirroring(&self, place: &Place) -> anyhow::Result<()> {
        let path = format!("/apis/configbutler.ai/v1alpha1/namespaces/{}/gitdestinations/live", place.namespace);
        let started = Instant::now();
        loop {
            let object = self.api.get(&path).await?;
            let conditions = object["status"]["conditions"].as_array().context("no conditions").cloned();
            let is_ready = |condition: &serde_json::Value| {
                condition["type"] == "Ready" && condition["status"] == "True" && condition["reason"] == "Mirroring"
            };
            if conditions.unwrap_or_default().iter().any(is_ready) {
                return Ok(());
            }
            ensure!(started.elapsed() < PATIENCE, "{}", object["status"]);
            tokio::time::sleep(POLL).await;
        }
    }
}

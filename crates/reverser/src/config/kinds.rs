//! The four specs, as their manifests spell them.

use serde::Deserialize;

pub const GROUP: &str = "configbutler.ai";
pub const VERSION: &str = "v1alpha1";

/// Which of the four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ConfigKind {
    GitRepoConfig,
    GitDestination,
    WatchRule,
    ClusterWatchRule,
}

impl ConfigKind {
    pub const ALL: [Self; 4] = [Self::GitRepoConfig, Self::GitDestination, Self::WatchRule, Self::ClusterWatchRule];

    pub fn name(self) -> &'static str {
        match self {
            Self::GitRepoConfig => "GitRepoConfig",
            Self::GitDestination => "GitDestination",
            Self::WatchRule => "WatchRule",
            Self::ClusterWatchRule => "ClusterWatchRule",
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            Self::GitRepoConfig => "gitrepoconfigs",
            Self::GitDestination => "gitdestinations",
            Self::WatchRule => "watchrules",
            Self::ClusterWatchRule => "clusterwatchrules",
        }
    }

    pub fn api_version() -> String {
        format!("{GROUP}/{VERSION}")
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitRepoConfig {
    pub repo_url: String,
    pub allowed_branches: Vec<String>,
    pub secret_ref: Option<LocalRef>,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GitDestination {
    pub repo_ref: NamespacedRef,
    pub branch: String,
    pub base_folder: String,
    pub encryption: Option<Encryption>,
    #[serde(default)]
    pub secrets: SecretPolicy,
    #[serde(default)]
    pub commit: Commit,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchRule {
    pub destination_ref: NamespacedRef,
    pub rules: Vec<Rule>,
}

/// Its rules have a `scope`; its destination always names a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterWatchRule {
    pub destination_ref: NamespacedRef,
    pub rules: Vec<Rule>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    #[serde(default)]
    pub operations: Vec<OperationName>,
    #[serde(default)]
    pub api_groups: Vec<String>,
    #[serde(default)]
    pub api_versions: Vec<String>,
    /// Nothing means the desired-state preset.
    #[serde(default)]
    pub resources: Vec<String>,
    /// Of a ClusterWatchRule alone.
    pub scope: Option<RuleScope>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum RuleScope {
    Cluster,
    Namespaced,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize)]
pub enum OperationName {
    #[serde(rename = "CREATE")]
    Create,
    #[serde(rename = "UPDATE")]
    Update,
    #[serde(rename = "DELETE")]
    Delete,
    #[serde(rename = "*")]
    All,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct LocalRef {
    pub name: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct NamespacedRef {
    pub name: String,
    pub namespace: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Encryption {
    pub provider: EncryptionProvider,
    #[serde(default)]
    pub recipients: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum EncryptionProvider {
    #[serde(rename = "sops-age")]
    SopsAge,
}

/// What becomes of Secrets without `encryption`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub enum SecretPolicy {
    /// They stay out of Git.
    #[default]
    #[serde(rename = "skip")]
    Skip,
    /// The owner wrote `secrets: plaintext`, in so many words.
    #[serde(rename = "plaintext")]
    Plaintext,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct Commit {
    pub signing: Option<Signing>,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signing {
    pub secret_ref: LocalRef,
}

//! The operator's configuration: four kinds of `configbutler.ai/v1alpha1`.
//!
//! Invariant: what is invalid becomes a condition of its own object, never an
//! error of the operator: one bad rule holds up nobody else.

pub mod crds;
mod glob;
mod kinds;
mod set;
mod status;
mod validate;

pub use glob::Glob;
pub use kinds::{
    ClusterWatchRule, Commit, ConfigKind, Encryption, EncryptionProvider, GROUP, GitDestination, GitRepoConfig,
    LocalRef, NamespacedRef, OperationName, Rule, RuleScope, SecretPolicy, Signing, VERSION, WatchRule,
};
pub use set::{ConfigSet, Configured, Id, Meta, id_of};
pub use status::{Condition, Reason, StatusBody, Truth};
pub use validate::{Problem, check_base_folder, check_branch, check_repo_url, folders_overlap, remote_name};

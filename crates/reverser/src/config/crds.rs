//! The definitions of the four kinds, as YAML.

use super::ConfigKind;

/// The text that `tidegate reverse install --print` and the chart apply.
pub fn yaml(kind: ConfigKind) -> &'static str {
    match kind {
        ConfigKind::GitRepoConfig => include_str!("../../crds/gitrepoconfigs.yaml"),
        ConfigKind::GitDestination => include_str!("../../crds/gitdestinations.yaml"),
        ConfigKind::WatchRule => include_str!("../../crds/watchrules.yaml"),
        ConfigKind::ClusterWatchRule => include_str!("../../crds/clusterwatchrules.yaml"),
    }
}

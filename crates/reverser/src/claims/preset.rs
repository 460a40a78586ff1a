//! What a rule means that names no resources, and what it never means unless
//! it is named.

/// Desired state: what people write, as (group, plural).
const PRESET: [(&str, &str); 20] = [
    ("", "configmaps"),
    ("", "limitranges"),
    ("", "resourcequotas"),
    ("", "secrets"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("policy", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "storageclasses"),
];

/// What machines write all the time.
const EXCLUDED: [&str; 10] = [
    "controllerrevisions",
    "cronjobs",
    "endpoints",
    "endpointslices",
    "events",
    "flowschemas",
    "jobs",
    "leases",
    "pods",
    "prioritylevelconfigurations",
];

/// Kubernetes' own groups; a type of somebody else that has the name of one
/// of the excluded is not that one.
fn is_kubernetes_group(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

pub fn is_preset(group: &str, plural: &str) -> bool {
    PRESET.contains(&(group, plural))
}

pub fn is_excluded_unless_named(group: &str, plural: &str) -> bool {
    is_kubernetes_group(group) && EXCLUDED.contains(&plural)
}

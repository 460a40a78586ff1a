//! Tables and properties of the plan, through one door.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::config::{ConfigKind, ConfigSet, Id};

const OPTIONS: PlanOptions = PlanOptions { omitted: Omitted::Preset, cross_namespace: true };

fn catalog() -> Catalog {
    let types = [
        ("", "v1", "configmaps", true),
        ("", "v1", "pods", true),
        ("", "v1", "secrets", true),
        ("", "v1", "nodes", false),
        ("apps", "v1", "deployments", true),
        ("batch", "v1", "jobs", true),
        ("example.com", "v2", "widgets", true),
        ("example.com", "v1", "widgets", true),
        ("example.com", "v1", "jobs", true),
        ("other.com", "v1beta1", "widgets", true),
        ("rbac.authorization.k8s.io", "v1", "clusterroles", false),
    ];
    Catalog::new(types.map(|(group, version, resource, namespaced)| ServedType {
        id: TypeId::new(group, version, resource),
        kind: "X".into(),
        namespaced,
        watchable: true,
    }))
}

fn base() -> ConfigSet {
    let mut set = ConfigSet::default();
    put(
        &mut set,
        ConfigKind::GitRepoConfig,
        "ops/repo",
        json!({"repoUrl": "https://h/r.git", "allowedBranches": ["main", "x/*"]}),
    );
    put(
        &mut set,
        ConfigKind::GitDestination,
        "ops/d",
        json!({"repoRef": {"name": "repo"}, "branch": "main", "baseFolder": "live"}),
    );
    set
}

fn put(set: &mut ConfigSet, kind: ConfigKind, id: &str, spec: Value) {
    let (namespace, name) = id.split_once('/').unwrap_or(("", id));
    let created = format!("2026-01-01T00:00:{:02}Z", set.destinations.len());
    let metadata = json!({"namespace": namespace, "name": name, "generation": 1, "creationTimestamp": created});
    set.put(kind, &json!({"metadata": metadata, "spec": spec}));
}

fn with_rule(kind: ConfigKind, id: &str, rule: Value) -> Desired {
    let mut set = base();
    let spec = json!({"destinationRef": {"name": "d", "namespace": "ops"}, "rules": [rule]});
    put(&mut set, kind, id, spec);
    plan(&set, &catalog(), OPTIONS)
}

fn tell(desired: &Desired) -> String {
    let mut lines: Vec<String> = desired
        .claims
        .iter()
        .map(|claim| format!("watch {} in {}", claim.of, claim.namespace.as_deref().unwrap_or("*")))
        .collect();
    for verdict in desired.rules.values() {
        lines.extend(verdict.waiting.iter().map(|name| format!("waits for {name}")));
        lines.extend(verdict.problems.iter().map(|problem| format!("{}: {}", problem.reason.text(), problem.message)));
    }
    lines.join("\n") + "\n"
}

fn check(kind: ConfigKind, id: &str, rule: Value, expected: Expect) {
    expected.assert_eq(&tell(&with_rule(kind, id, rule)));
}

fn check_namespaced(rule: Value, expected: Expect) {
    check(ConfigKind::WatchRule, "team/r", rule, expected);
}

#[test]
fn a_bare_plural_means_every_group_at_its_preferred_version() {
    check_namespaced(
        json!({"resources": ["widgets"]}),
        expect![[r#"
        watch example.com/v2/widgets in team
        watch other.com/v1beta1/widgets in team
    "#]],
    );
}

#[test]
fn groups_and_versions_narrow() {
    check_namespaced(
        json!({"resources": ["Widgets"], "apiGroups": ["example.com"], "apiVersions": ["v1"]}),
        expect![[r#"
        watch example.com/v1/widgets in team
    "#]],
    );
    check_namespaced(
        json!({"resources": ["widgets.other.com"], "apiVersions": ["*"]}),
        expect![[r#"
        watch other.com/v1beta1/widgets in team
    "#]],
    );
}

#[test]
fn nothing_named_means_the_preset() {
    check_namespaced(
        json!({}),
        expect![[r#"
            watch v1/configmaps in team
            watch v1/secrets in team
            watch apps/v1/deployments in team
        "#]],
    );
    check(
        ConfigKind::ClusterWatchRule,
        "r",
        json!({"scope": "Cluster"}),
        expect![[r#"
        watch rbac.authorization.k8s.io/v1/clusterroles in *
    "#]],
    );
}

#[test]
fn everything_leaves_out_what_machines_write() {
    check_namespaced(
        json!({"resources": ["*"]}),
        expect![[r#"
            watch v1/configmaps in team
            watch v1/secrets in team
            watch apps/v1/deployments in team
            watch example.com/v1/jobs in team
            watch example.com/v2/widgets in team
            watch other.com/v1beta1/widgets in team
        "#]],
    );
    let batch = json!({"resources": ["*"], "apiGroups": ["batch"]});
    assert!(with_rule(ConfigKind::WatchRule, "team/r", batch).claims.is_empty());
}

#[test]
fn what_machines_write_can_be_named() {
    check_namespaced(
        json!({"resources": ["pods", "jobs"], "apiGroups": ["", "batch"]}),
        expect![[r#"
            watch v1/pods in team
            watch batch/v1/jobs in team
        "#]],
    );
}

#[test]
fn what_cannot_be_meant_is_said() {
    check_namespaced(
        json!({"resources": ["pods/log", "conf*", "nodes", ""]}),
        expect![[r#"
        InvalidRule: resources: `pods/log`: subresources are no objects of their own; name the resource alone
        InvalidRule: resources: `conf*`: patterns are not supported; name the plural, or `*`
        InvalidRule: `nodes` is cluster-scoped: use a ClusterWatchRule with `scope: Cluster`
        InvalidRule: resources: ``: it is empty; name a plural such as `configmaps`
    "#]],
    );
    check(
        ConfigKind::ClusterWatchRule,
        "r",
        json!({"resources": ["configmaps"], "scope": "Cluster"}),
        expect![[r#"
        InvalidRule: `configmaps` is namespaced: use a WatchRule, or `scope: Namespaced`
    "#]],
    );
    check(
        ConfigKind::ClusterWatchRule,
        "r",
        json!({"resources": ["configmaps"]}),
        expect![[r#"
        InvalidRule: rules[].scope is required: Cluster or Namespaced
    "#]],
    );
}

#[test]
fn what_is_not_served_is_waited_for() {
    check_namespaced(
        json!({"resources": ["gadgets"]}),
        expect![[r#"
        waits for gadgets
    "#]],
    );
}

#[test]
fn a_watch_of_all_namespaces_serves_the_single_ones() {
    let mut set = base();
    let to = json!({"name": "d", "namespace": "ops"});
    let rule =
        |operations: &[&str]| json!({"resources": ["configmaps"], "operations": operations, "scope": "Namespaced"});
    put(&mut set, ConfigKind::WatchRule, "team/r", json!({"destinationRef": to, "rules": [rule(&["DELETE"])]}));
    put(
        &mut set,
        ConfigKind::ClusterWatchRule,
        "r",
        json!({"destinationRef": to, "rules": [rule(&["CREATE", "UPDATE"])]}),
    );
    let desired = plan(&set, &catalog(), OPTIONS);
    assert_eq!(tell(&desired), "watch v1/configmaps in *\n");
    let of = TypeId::new("", "v1", "configmaps");
    let operations = |namespace| desired.routes.of(&of, Some(namespace))[0].operations;
    assert_eq!(operations("team"), Operations::ALL);
    assert_eq!(operations("else"), Operations { create: true, update: true, delete: false });
    assert_eq!(desired.claims_of(&Id::new("ops", "d")).len(), 1);
}

#[test]
fn the_older_of_two_overlapping_destinations_is_in_force() {
    let mut set = base();
    let spec = json!({"repoRef": {"name": "repo", "namespace": "ops"}, "branch": "main", "baseFolder": "live/x"});
    put(&mut set, ConfigKind::GitDestination, "a/later", spec);
    let desired = plan(&set, &catalog(), OPTIONS);
    assert!(desired.destinations[&Id::new("ops", "d")].is_ok());
    let problem = desired.destinations[&Id::new("a", "later")].as_ref().unwrap_err();
    expect!["spec.baseFolder `live/x` overlaps `live` of GitDestination ops/d, which is older, on branch `main` of the same repository: choose another folder"].assert_eq(&problem.message);
}

#[test]
fn destinations_are_checked() {
    let problem = |spec: Value| {
        let mut set = base();
        put(&mut set, ConfigKind::GitDestination, "ops/z", spec);
        let planned = plan(&set, &catalog(), OPTIONS).destinations[&Id::new("ops", "z")].clone();
        planned.map_or_else(|problem| problem.reason.text(), |_| "ok".into())
    };
    let repo = json!({"name": "repo"});
    let of = |branch: &str, folder: &str| json!({"repoRef": repo, "branch": branch, "baseFolder": folder});
    assert_eq!(problem(of("main", "other")), "ok");
    assert_eq!(problem(of("x/1", "live")), "ok");
    assert_eq!(problem(of("dev", "other")), "BranchNotAllowed");
    assert_eq!(problem(of("a..b", "other")), "InvalidBranch");
    assert_eq!(problem(of("main", "../x")), "InvalidFolder");
    assert_eq!(problem(json!({"repoRef": {"name": "no"}, "branch": "main", "baseFolder": "o"})), "RepoConfigNotFound");
    let empty = json!({"repoRef": repo, "branch": "main", "baseFolder": "o", "encryption": {"provider": "sops-age"}});
    assert_eq!(problem(empty), "EncryptionInvalid");
}

#[test]
fn another_namespace_only_where_it_is_allowed() {
    let mut set = base();
    let spec = json!({"destinationRef": {"name": "d", "namespace": "ops"}, "rules": [{"resources": ["configmaps"]}]});
    put(&mut set, ConfigKind::WatchRule, "team/r", spec);
    let desired = plan(&set, &catalog(), PlanOptions { cross_namespace: false, ..OPTIONS });
    assert!(desired.claims.is_empty());
    expect![[r#"
        CrossNamespaceRefused: spec.destinationRef.namespace `ops` is another one, which this operator does not allow
    "#]]
    .assert_eq(&tell(&desired));
}

fn any_rule() -> impl Strategy<Value = (bool, String, Vec<&'static str>)> {
    let resources = prop::sample::subsequence(vec!["configmaps", "widgets", "*", "pods", "secrets", "nodes"], 0..4);
    (any::<bool>(), "[abc]", resources)
}

proptest! {
    /// Every object that a rule selects is told by exactly one watch, and no
    /// watch runs that nobody needs.
    #[test]
    fn one_watch_tells_of_each_object(rules in prop::collection::vec(any_rule(), 0..8)) {
        let mut set = base();
        for (at, (cluster, namespace, resources)) in rules.iter().enumerate() {
            let rule = json!({"resources": resources, "scope": "Namespaced"});
            let spec = json!({"destinationRef": {"name": "d", "namespace": "ops"}, "rules": [rule]});
            match cluster {
                true => put(&mut set, ConfigKind::ClusterWatchRule, &format!("r{at}"), spec),
                false => put(&mut set, ConfigKind::WatchRule, &format!("{namespace}/r{at}"), spec),
            }
        }
        let desired = plan(&set, &catalog(), OPTIONS);
        for versions in catalog().resources() {
            let of = &versions[0].id;
            for namespace in ["a", "b", "c", "z"] {
                let telling = desired.claims.iter().filter(|claim| {
                    claim.of == *of && claim.namespace.as_deref().is_none_or(|own| own == namespace)
                });
                let routed = !desired.routes.of(of, Some(namespace)).is_empty();
                prop_assert!(telling.count() == usize::from(routed), "{} in {}", of, namespace);
            }
        }
        let needed = desired.claims_of(&Id::new("ops", "d"));
        prop_assert_eq!(needed, desired.claims);
    }
}

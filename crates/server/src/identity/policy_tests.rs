//! RBAC by tables, and by comparison with a naive reading of the same objects.

use serde_json::{Value, json};
use tidegate_model::{GroupResource, Object};

use super::{Attributes, Identity, Policy, Verb};

const CATALOG: &str = "catalog.gitstore.dev";

/// One role, bound to the account `shop/bot` in the cluster.
fn policy_of(rules: Value) -> Policy {
    Policy::build(
        [cluster_role("role", json!({}), rules), cluster_binding("role", json!([account("shop", "bot")]))].iter(),
    )
}

fn object(kind: &str, metadata: Value, rest: Value) -> Object {
    let mut root = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata});
    let fields = rest.as_object().unwrap().clone();
    root.as_object_mut().unwrap().extend(fields);
    Object::from_value(root).unwrap()
}

fn cluster_role(name: &str, labels: Value, rules: Value) -> Object {
    object("ClusterRole", json!({"name": name, "labels": labels}), json!({"rules": rules}))
}

fn aggregated(name: &str, labels: Value, selectors: Value) -> Object {
    let rest = json!({"aggregationRule": {"clusterRoleSelectors": selectors}});
    object("ClusterRole", json!({"name": name, "labels": labels}), rest)
}

fn cluster_binding(role: &str, subjects: Value) -> Object {
    let rest = json!({"roleRef": {"kind": "ClusterRole", "name": role}, "subjects": subjects});
    object("ClusterRoleBinding", json!({"name": format!("bind-{role}")}), rest)
}

fn binding(namespace: &str, name: &str, role: Value, subjects: Value) -> Object {
    object("RoleBinding", json!({"name": name, "namespace": namespace}), json!({"roleRef": role, "subjects": subjects}))
}

fn account(namespace: &str, name: &str) -> Value {
    json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
}

fn bot() -> Identity {
    Identity::service_account("shop", "bot")
}

/// `patch products/status.catalog.gitstore.dev shop/lamp`; a `-` is none.
fn attributes(text: &str) -> Attributes {
    let mut words = text.split(' ');
    let verb = words.next().unwrap();
    let verb = Verb::ALL.into_iter().find(|v| v.as_str() == verb).unwrap();
    let (resource, group) = words.next().map(|w| w.split_once('.').unwrap_or((w, ""))).unwrap();
    let (plural, sub) = resource.split_once('/').map_or((resource, None), |(p, s)| (p, Some(s)));
    let (namespace, name) = words.next().unwrap().split_once('/').unwrap();
    let mut asked = Attributes::new(verb, &GroupResource::new(group, plural));
    asked.subresource = sub.map(|s| ["status", "finalizers", "token"].into_iter().find(|k| *k == s).unwrap());
    asked.namespace = (namespace != "-").then(|| namespace.into());
    asked.name = (name != "-").then(|| name.into());
    asked
}

#[track_caller]
fn check(policy: &Policy, identity: &Identity, allowed: &[&str], denied: &[&str]) {
    for text in allowed {
        assert!(policy.allows(identity, &attributes(text)), "should allow {text}");
    }
    for text in denied {
        assert!(!policy.allows(identity, &attributes(text)), "should deny {text}");
    }
}

#[test]
fn verbs_groups_and_resources_match_as_in_kubernetes() {
    let rule = |verbs: &[&str], groups: &[&str], resources: &[&str]| {
        policy_of(json!([{"verbs": verbs, "apiGroups": groups, "resources": resources}]))
    };
    check(
        &rule(&["get", "list", "watch"], &[CATALOG], &["products"]),
        &bot(),
        &[
            "get products.catalog.gitstore.dev shop/lamp",
            "list products.catalog.gitstore.dev -/-",
            "watch products.catalog.gitstore.dev shop/-",
        ],
        &[
            "patch products/status.catalog.gitstore.dev shop/lamp",
            "get products/status.catalog.gitstore.dev shop/lamp",
            "get products shop/lamp",
            "get collections.catalog.gitstore.dev shop/lamp",
        ],
    );
    check(
        &rule(&["patch"], &[CATALOG], &["products/status"]),
        &bot(),
        &["patch products/status.catalog.gitstore.dev shop/lamp"],
        &[
            "patch products/finalizers.catalog.gitstore.dev shop/lamp",
            "get products/status.catalog.gitstore.dev shop/lamp",
        ],
    );
    check(
        &rule(&["*"], &["*"], &["*/status"]),
        &bot(),
        &["patch products/status.catalog.gitstore.dev shop/a", "get leases/status.x shop/b"],
        &["get products.catalog.gitstore.dev shop/a", "patch products/finalizers.catalog.gitstore.dev shop/a"],
    );
    check(
        &rule(&["*"], &["*"], &["*"]),
        &bot(),
        &[
            "patch products/finalizers.catalog.gitstore.dev shop/a",
            "create serviceaccounts/token shop/x",
            "push repositories.tidegate.dev system/control",
        ],
        &[],
    );
    // As in Kubernetes, where `plural/*` is not a pattern.
    check(
        &rule(&["*"], &["*"], &["products/*"]),
        &bot(),
        &[],
        &["patch products/status.catalog.gitstore.dev shop/a", "get products.catalog.gitstore.dev shop/a"],
    );
    check(
        &rule(&["create"], &[""], &["serviceaccounts/token"]),
        &bot(),
        &["create serviceaccounts/token shop/x"],
        &["create serviceaccounts shop/x"],
    );
    check(
        &rule(&["push"], &["tidegate.dev"], &["repositories"]),
        &bot(),
        &["push repositories.tidegate.dev a/b"],
        &["fetch repositories.tidegate.dev a/b"],
    );
}

#[test]
fn resource_names_restrict_to_those_names() {
    let rule = json!([{"verbs": ["*"], "apiGroups": [CATALOG], "resources": ["*"], "resourceNames": ["lamp", "desk"]}]);
    check(
        &policy_of(rule),
        &bot(),
        &["get products.catalog.gitstore.dev shop/lamp", "watch products.catalog.gitstore.dev shop/desk"],
        &["get products.catalog.gitstore.dev shop/chair", "list products.catalog.gitstore.dev shop/-"],
    );
}

#[test]
fn a_role_binding_grants_in_its_namespace_only() {
    let rules = json!([{"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"]}]);
    let role = object("Role", json!({"name": "r", "namespace": "shop"}), json!({"rules": rules}));
    let cluster = cluster_role("c", json!({}), rules);
    let local = json!({"kind": "Role", "name": "r"});
    // The same name in the cluster, which a `Role` reference must not find.
    let decoy = cluster_role("r", json!({}), json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]));
    let other = binding("other", "b", local.clone(), json!([account("shop", "bot")]));
    let by_role = Policy::build(
        [role, decoy, binding("shop", "b", local, json!([{"kind": "ServiceAccount", "name": "bot"}])), other].iter(),
    );
    let by_cluster_role = Policy::build(
        [cluster, binding("shop", "b", json!({"kind": "ClusterRole", "name": "c"}), json!([account("shop", "bot")]))]
            .iter(),
    );
    for policy in [by_role, by_cluster_role] {
        check(
            &policy,
            &bot(),
            &["get products.catalog.gitstore.dev shop/lamp"],
            &[
                "get products.catalog.gitstore.dev other/lamp",
                "get namespaces -/shop",
                "list products.catalog.gitstore.dev shop/-",
            ],
        );
        check(
            &policy,
            &Identity::service_account("other", "bot"),
            &[],
            &["get products.catalog.gitstore.dev shop/lamp"],
        );
    }
}

#[test]
fn subjects_are_users_groups_and_accounts() {
    let rules = json!([{"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"]}]);
    let allowed = |subject: Value| {
        let objects = [cluster_role("r", json!({}), rules.clone()), cluster_binding("r", json!([subject]))];
        Policy::build(objects.iter()).allows(&bot(), &attributes("get x a/b"))
    };
    let user = |name: &str| json!({"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name});
    let group = |name: &str| json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name});
    let table = [
        (account("shop", "bot"), true),
        (account("shop", "other"), false),
        (user("system:serviceaccount:shop:bot"), true),
        (user("bot"), false),
        (group("system:serviceaccounts"), true),
        (group("system:serviceaccounts:shop"), true),
        (group("system:serviceaccounts:other"), false),
        (group("system:authenticated"), true),
        (group("system:masters"), false),
        (group("system:serviceaccount:shop:bot"), false),
        // Malformed: no namespace in a cluster binding, wrong group, no name.
        (json!({"kind": "ServiceAccount", "name": "bot"}), false),
        (json!({"kind": "Group", "apiGroup": "x", "name": "system:authenticated"}), false),
        (json!({"kind": "Everybody", "name": "system:authenticated"}), false),
        (json!("system:authenticated"), false),
    ];
    for (subject, expected) in table {
        assert_eq!(allowed(subject.clone()), expected, "{subject}");
    }
    assert!(Policy::default().allows(&Identity::admin(), &attributes("push x a/b")));
    assert!(Policy::default().allows_url(&Identity::admin(), "get", "/metrics"));
}

#[test]
fn urls_are_granted_by_cluster_bindings_only() {
    let rules = json!([{"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]}]);
    let policy = policy_of(rules.clone());
    for (path, expected) in
        [("/metrics", true), ("/metrics/x", false), ("/debug/", true), ("/debug/a/b", true), ("/", false)]
    {
        assert_eq!(policy.allows_url(&bot(), "get", path), expected, "{path}");
    }
    assert!(!policy.allows_url(&bot(), "post", "/metrics"));
    assert!(policy_of(json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}])).allows_url(&bot(), "get", "/metrics"));
    // Everything of resources is not everything.
    assert!(!policy_of(json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}])).allows_url(
        &bot(),
        "get",
        "/metrics"
    ));
    let local = binding("shop", "b", json!({"kind": "ClusterRole", "name": "c"}), json!([account("shop", "bot")]));
    assert!(!Policy::build([cluster_role("c", json!({}), rules), local].iter()).allows_url(&bot(), "get", "/metrics"));
}

#[test]
fn what_is_malformed_grants_nothing_and_is_reported() {
    let all = |extra: Value| {
        let mut rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        rule.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!([rule])
    };
    let table = [
        (all(json!({"verbs": "*"})), "rules[0].verbs"),
        (all(json!({"verbs": []})), "rules[0].verbs"),
        (all(json!({"verbs": ["*", 1]})), "rules[0].verbs"),
        (all(json!({"apiGroups": null})), "rules[0].apiGroups"),
        (all(json!({"resources": {}})), "rules[0].resources"),
        (all(json!({"resourceNames": "lamp"})), "rules[0].resourceNames"),
        (all(json!({"resourceName": ["lamp"]})), "rules[0].resourceName"),
        (all(json!({"nonResourceURLs": ["/metrics"]})), "rules[0].nonResourceURLs"),
        (json!(["*"]), "rules[0]"),
        (json!({"verbs": ["*"]}), "rules"),
    ];
    for (rules, path) in table {
        let policy = policy_of(rules.clone());
        check(&policy, &bot(), &[], &["get products.catalog.gitstore.dev shop/lamp", "get namespaces -/shop"]);
        assert!(!policy.allows_url(&bot(), "get", "/metrics"), "{rules}");
        let problems: Vec<_> = policy.problems().map(|(_, problem)| problem.path.as_str()).collect();
        assert_eq!(problems, [path], "{rules}");
    }
    // The rule beside it stays in force.
    let mixed = json!([{"verbs": 1}, {"verbs": ["get"], "apiGroups": [""], "resources": ["namespaces"]}]);
    check(&policy_of(mixed), &bot(), &["get namespaces -/shop"], &["list namespaces -/-"]);
}

#[test]
fn a_broken_role_reference_binds_nothing() {
    let role = cluster_role("r", json!({}), json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]));
    for role_ref in [
        json!({"kind": "Role", "name": "r"}),
        json!({"kind": "ClusterRole"}),
        json!({"name": "r"}),
        json!({"kind": "ClusterRole", "name": "r", "apiGroup": "x"}),
        json!("r"),
        json!(null),
    ] {
        let rest = json!({"roleRef": role_ref, "subjects": [account("shop", "bot")]});
        let binding = object("ClusterRoleBinding", json!({"name": "b"}), rest);
        let policy = Policy::build([role.clone(), binding].iter());
        check(&policy, &bot(), &[], &["get namespaces -/shop"]);
        assert_eq!(policy.problems().count(), 1, "{role_ref}");
    }
}

#[test]
fn aggregation_follows_labels_through_several_roles_and_survives_cycles() {
    let part = |name: &str, label: &str, verb: &str| {
        cluster_role(name, json!({label: "true"}), json!([{"verbs": [verb], "apiGroups": [""], "resources": ["x"]}]))
    };
    let selects = |label: &str| json!([{"matchLabels": {label: "true"}}]);
    let mut policy = Policy::build(
        [
            part("a", "to-view", "get"),
            part("b", "to-edit", "push"),
            aggregated("view", json!({"to-edit": "true"}), selects("to-view")),
            // Edit contains view, and view contains edit again.
            aggregated("edit", json!({"to-view": "true"}), selects("to-edit")),
            cluster_binding("edit", json!([account("shop", "bot")])),
        ]
        .iter(),
    );
    check(&policy, &bot(), &["get x a/b", "push x a/b"], &["list x a/b"]);

    // A part that appears, loses its label, and goes.
    let late = part("c", "to-view", "list");
    let key = super::policy::rbac_key(&late).unwrap();
    assert!(policy.apply(&key, Some(&late)));
    check(&policy, &bot(), &["list x a/b"], &[]);
    assert!(policy.apply(&key, Some(&part("c", "elsewhere", "list"))));
    check(&policy, &bot(), &["get x a/b"], &["list x a/b"]);
    assert!(policy.apply(&key, None));
    assert!(!policy.apply(&key, None));

    // The own rules of an aggregated role are not its rules; a selector that
    // cannot be read selects nothing.
    let own = object(
        "ClusterRole",
        json!({"name": "edit"}),
        json!({"aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Like"}]}]},
               "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}),
    );
    policy.apply(&super::policy::rbac_key(&own).unwrap(), Some(&own));
    check(&policy, &bot(), &[], &["get x a/b", "push x a/b"]);
    assert_ne!(policy.problems().count(), 0);
}

#[test]
fn changes_say_whether_anything_changed() {
    let mut policy = policy_of(json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["x"]}]));
    let bound = cluster_binding("role", json!([account("shop", "bot")]));
    let key = super::policy::rbac_key(&bound).unwrap();
    assert!(!policy.apply(&key, Some(&bound)), "the same state again");
    assert!(policy.apply(&key, Some(&cluster_binding("role", json!([account("shop", "other")])))));
    check(&policy, &bot(), &[], &["get x a/b"]);
    assert!(policy.apply(&key, Some(&bound)));
    check(&policy, &bot(), &["get x a/b"], &[]);
    assert!(policy.apply(&key, None));
    check(&policy, &bot(), &[], &["get x a/b"]);
}

//! The policy against a naive reading of the same objects: whatever the order
//! of changes, both give the same answers.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tidegate_model::{GroupResource, Object, ObjectKey};

use super::policy::rbac_key;
use super::{Attributes, GROUP_MASTERS, Identity, Policy, Verb};

/// Straight from the documentation of Kubernetes RBAC: look at everything.
fn reference(objects: &[Object], identity: &Identity, asked: &Attributes) -> bool {
    identity.groups.iter().any(|group| **group == *GROUP_MASTERS)
        || objects.iter().any(|object| {
            let applies = match object.kind() {
                "ClusterRoleBinding" => true,
                "RoleBinding" => object.namespace() == asked.namespace.as_deref(),
                _ => false,
            };
            applies
                && list(object, "subjects").iter().any(|subject| is_subject(subject, object.namespace(), identity))
                && rules_of(objects, object).iter().any(|rule| rule_allows(rule, asked))
        })
}

fn list(object: &Object, field: &str) -> Vec<Value> {
    object.root().get(field).and_then(Value::as_array).cloned().unwrap_or_default()
}

fn is_subject(subject: &Value, home: Option<&str>, identity: &Identity) -> bool {
    let name = subject["name"].as_str().unwrap();
    match subject["kind"].as_str().unwrap() {
        "User" => *identity.user == *name,
        "Group" => identity.groups.iter().any(|group| **group == *name),
        _ => subject["namespace"]
            .as_str()
            .or(home)
            .is_some_and(|home| *identity.user == format!("system:serviceaccount:{home}:{name}")),
    }
}

fn rules_of(objects: &[Object], binding: &Object) -> Vec<Value> {
    let (kind, name) = (&binding.root()["roleRef"]["kind"], &binding.root()["roleRef"]["name"]);
    let is_role = |object: &&Object| {
        object.kind() == kind
            && object.name() == name
            && (kind == "ClusterRole" || object.namespace() == binding.namespace())
    };
    let mut found: Vec<&Object> = objects.iter().filter(is_role).collect();
    // The closure of aggregation, by repeating until nothing is new.
    loop {
        let before = found.len();
        for role in found.clone() {
            for object in objects.iter().filter(|object| object.kind() == "ClusterRole" && selects(role, object)) {
                if !found.contains(&object) {
                    found.push(object);
                }
            }
        }
        if found.len() == before {
            break;
        }
    }
    found
        .into_iter()
        .filter(|role| !role.root().contains_key("aggregationRule"))
        .flat_map(|role| list(role, "rules"))
        .collect()
}

fn selects(role: &Object, other: &Object) -> bool {
    let label =
        &role.root().get("aggregationRule").unwrap_or(&Value::Null)["clusterRoleSelectors"][0]["matchLabels"]["to"];
    label.as_str().is_some_and(|label| other.labels().get("to") == Some(label))
}

fn rule_allows(rule: &Value, asked: &Attributes) -> bool {
    let has = |field: &str, wanted: &str| {
        rule[field].as_array().is_some_and(|items| items.iter().any(|item| item == "*" || item == wanted))
    };
    let combined = asked.subresource.map_or(asked.resource.to_string(), |sub| format!("{}/{sub}", asked.resource));
    let any_sub = asked.subresource.map_or("-".to_owned(), |sub| format!("*/{sub}"));
    let names = rule.get("resourceNames").and_then(Value::as_array).filter(|names| !names.is_empty());
    has("verbs", asked.verb.as_str())
        && has("apiGroups", &asked.group)
        && (has("resources", &combined) || has("resources", &any_sub))
        && names.is_none_or(|names| names.iter().any(|name| asked.name.as_deref() == name.as_str()))
}

fn rule() -> impl Strategy<Value = Value> {
    let some = |values: &'static [&'static str]| prop::collection::vec(select(values), 1..3);
    let resources = some(&["*", "x", "y", "x/status", "*/status", "y/token", "x/*"]);
    let names = prop::option::of(prop::collection::vec(select(&["n", "m"][..]), 0..2));
    (some(&["get", "patch", "push", "*"]), some(&["", "g", "*"]), resources, names).prop_map(
        |(verbs, groups, resources, names)| {
            let mut rule = json!({"verbs": verbs, "apiGroups": groups, "resources": resources});
            if let Some(names) = names {
                rule["resourceNames"] = json!(names);
            }
            rule
        },
    )
}

fn role() -> impl Strategy<Value = Object> {
    let label = prop::option::of(select(&["p", "q"][..]));
    let place = prop::option::of(select(&["a", "b"][..]));
    let rules = prop::collection::vec(rule(), 0..3);
    (place, select(&["r", "s", "t"][..]), label.clone(), label, rules).prop_map(|(place, name, to, from, rules)| {
        let kind = if place.is_some() { "Role" } else { "ClusterRole" };
        let mut root = root(kind, place, name);
        root["rules"] = json!(rules);
        if let Some(to) = to {
            root["metadata"]["labels"] = json!({"to": to});
        }
        if let (Some(from), None) = (from, place) {
            root["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"to": from}}]});
        }
        Object::from_value(root).unwrap()
    })
}

fn binding() -> impl Strategy<Value = Object> {
    let place = prop::option::of(select(&["a", "b"][..]));
    let subject = prop_oneof![
        select(&["a", "b"][..]).prop_map(|home| json!({"kind": "ServiceAccount", "namespace": home, "name": "u"})),
        Just(json!({"kind": "User", "name": "system:serviceaccount:a:u"})),
        select(&["system:serviceaccounts:b", "system:authenticated"][..])
            .prop_map(|name| json!({"kind": "Group", "name": name})),
    ];
    let subjects = prop::collection::vec(subject, 0..3);
    let names = select(&["i", "j"][..]);
    (place, names, any::<bool>(), select(&["r", "s", "t"][..]), subjects).prop_map(
        |(place, name, local, role, subjects)| {
            let kind = if place.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
            let mut root = root(kind, place, name);
            let role_kind = if local && place.is_some() { "Role" } else { "ClusterRole" };
            root["roleRef"] = json!({"kind": role_kind, "name": role});
            root["subjects"] = json!(subjects);
            Object::from_value(root).unwrap()
        },
    )
}

fn root(kind: &str, place: Option<&str>, name: &str) -> Value {
    let mut metadata = json!({"name": name});
    if let Some(place) = place {
        metadata["namespace"] = json!(place);
    }
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata})
}

fn questions() -> Vec<Attributes> {
    let mut all = Vec::new();
    for verb in [Verb::Get, Verb::Patch, Verb::List] {
        for (group, plural) in [("", "x"), ("g", "y")] {
            for subresource in [None, Some("status"), Some("token")] {
                for namespace in [None, Some("a"), Some("b")] {
                    for name in [None, Some("n")] {
                        let mut asked = Attributes::new(verb, &GroupResource::new(group, plural)).namespace(namespace);
                        asked.subresource = subresource;
                        asked.name = name.map(Into::into);
                        all.push(asked);
                    }
                }
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_reference_after_every_change(
        changes in prop::collection::vec((prop_oneof![role(), binding()], prop::bool::weighted(0.8)), 1..24),
    ) {
        let (mut policy, mut objects) = (Policy::default(), Vec::<(ObjectKey, Object)>::new());
        for (object, is_present) in changes {
            let key = rbac_key(&object).unwrap();
            policy.apply(&key, is_present.then_some(&object));
            objects.retain(|(other, _)| *other != key);
            if is_present {
                objects.push((key, object));
            }
        }
        let objects: Vec<Object> = objects.into_iter().map(|(_, object)| object).collect();
        let built = Policy::build(objects.iter());
        for identity in [Identity::service_account("a", "u"), Identity::service_account("b", "u")] {
            for asked in questions() {
                let expected = reference(&objects, &identity, &asked);
                prop_assert_eq!(policy.allows(&identity, &asked), expected, "{} of {}", asked, identity.user);
                prop_assert_eq!(built.allows(&identity, &asked), expected, "built: {} of {}", asked, identity.user);
            }
        }
    }
}

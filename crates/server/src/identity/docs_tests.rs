//! The examples of `docs/authorization.md`, tried word for word.

use tidegate_model::{GroupResource, Object, yaml};

use super::{Attributes, Identity, Policy, Verb};

const PAGE: &str = include_str!("../../../../docs/authorization.md");

/// The fenced blocks of a language, in order.
fn blocks(section: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    section.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn policy(section: &str) -> Policy {
    let documents = blocks(section, "yaml").into_iter().flat_map(|block| yaml::parse_documents(&block).unwrap());
    let objects: Vec<Object> = documents.map(|document| Object::from_value(document.value).unwrap()).collect();
    Policy::build(objects.iter())
}

fn identity(user: &str) -> Identity {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:").unwrap().split_once(':').unwrap();
    Identity::service_account(namespace, name)
}

/// `verb resource place`; a place is `-`, `namespace` or `namespace/name`.
fn allows(policy: &Policy, identity: &Identity, verb: &str, resource: &str, place: &str) -> bool {
    if resource.starts_with('/') {
        return policy.allows_url(identity, verb, resource);
    }
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (plural, subresource) = resource.split_once('/').map_or((resource, None), |(plural, sub)| (plural, Some(sub)));
    let (namespace, name) = place.split_once('/').map_or((place, None), |(namespace, name)| (namespace, Some(name)));
    let verb = Verb::ALL.into_iter().find(|known| known.as_str() == verb).unwrap();
    let mut asked = Attributes::new(verb, &GroupResource::new(group, plural)).namespace(Some(namespace));
    asked.subresource =
        subresource.map(|sub| ["status", "finalizers", "token"].into_iter().find(|s| *s == sub).unwrap());
    asked.namespace = asked.namespace.filter(|namespace| &**namespace != "-");
    asked.name = name.map(Into::into);
    policy.allows(identity, &asked)
}

/// How many questions the section's tables ask.
fn check(section: &str) -> usize {
    let (policy, mut caller, mut asked) = (policy(section), Identity::admin(), 0);
    assert_eq!(policy.problems().count(), 0);
    for line in blocks(section, "text").iter().flat_map(|block| block.lines()) {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [user] => caller = identity(user),
            [answer, verb, resource, place] => {
                let expected = answer == "yes";
                assert_eq!(allows(&policy, &caller, verb, resource, place), expected, "{} {line}", caller.user);
                asked += 1;
            }
            _ => panic!("{line}"),
        }
    }
    asked
}

#[test]
fn the_tables_are_what_the_server_answers() {
    let asked: usize = PAGE.split("\n## ").map(check).sum();
    assert!(asked > 15, "the tables were found");
}

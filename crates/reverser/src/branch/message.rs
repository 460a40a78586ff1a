//! What a commit says: who did what, and what an audit needs.

use std::fmt::Write;

use tidegate_git::Person;
use tidegate_model::mirror::ResourceKey;

use crate::change::{Author, Version};

/// Who writes: the committer of every commit, and its trailers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operator {
    pub name: String,
    pub email: String,
    /// `users.noreply.<cluster>`: the address of those who have none.
    pub noreply_domain: String,
    pub controller_namespace: String,
    pub controller_name: String,
    pub instance_id: String,
}

/// What a commit did to one file.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Effect {
    pub operation: Operation,
    pub key: ResourceKey,
    pub version: Version,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

impl Operator {
    pub(super) fn committer(&self) -> Person {
        Person::new(&self.name, &self.email)
    }

    pub(super) fn person(&self, author: &Author) -> Person {
        match author {
            Author::User { name, email } => Person::new(name, email),
            // No name of several is put in the place of one.
            Author::Unknown | Author::Several(_) => Person::new("unknown", &format!("unknown@{}", self.noreply_domain)),
        }
    }
}

/// At least one effect.
pub(super) fn message(operator: &Operator, cluster_uid: &str, author: &Author, effects: &[Effect]) -> String {
    let by = author.each().iter().map(said).collect::<Vec<_>>().join(", ");
    let mut text = match effects {
        [effect] => format!("{} by {by}\n", line(effect)),
        effects => {
            let lines: String = effects.iter().map(|effect| line(effect) + "\n").collect();
            format!("{} by {by}\n\n{lines}", summary(effects))
        }
    };
    text.push('\n');
    for (trailer, value) in [
        ("ClusterUID", cluster_uid),
        ("ControllerNS", &operator.controller_namespace),
        ("ControllerName", &operator.controller_name),
        ("InstanceID", &operator.instance_id),
    ] {
        let _ = writeln!(text, "X-ConfigButler-{trailer}: {}", one_line(value));
    }
    effects.iter().for_each(|effect| text.push_str(&trailer(effect)));
    text.push_str(&co_authors(author));
    text
}

fn said(author: &Author) -> String {
    match author {
        Author::User { name, .. } => format!("user/{}", one_line(name)),
        Author::Unknown | Author::Several(_) => "unknown".to_owned(),
    }
}

/// Those whose change this is together, as Git hosts show them.
fn co_authors(author: &Author) -> String {
    let Author::Several(all) = author else { return String::new() };
    let line = |one: &Author| match one {
        Author::User { name, email } => format!("Co-authored-by: {} <{}>\n", one_line(name), one_line(email)),
        Author::Unknown | Author::Several(_) => String::new(),
    };
    all.iter().map(line).collect()
}

fn line(effect: &Effect) -> String {
    format!("[{}] {}", effect.operation.word(), effect.key)
}

/// `[UPDATE] 3 objects`, or `3 objects: 1 created, 2 deleted`.
fn summary(effects: &[Effect]) -> String {
    let count = |operation| effects.iter().filter(|effect| effect.operation == operation).count();
    let counts =
        [Operation::Create, Operation::Update, Operation::Delete].map(|operation| (operation, count(operation)));
    if let Some((operation, count)) = counts.iter().find(|(_, count)| *count == effects.len()) {
        return format!("[{}] {count} objects", operation.word());
    }
    let words = counts.iter().filter(|(_, count)| *count > 0);
    let words: Vec<_> =
        words.map(|(operation, count)| format!("{count} {}d", operation.word().to_lowercase())).collect();
    format!("[SYNC] {} objects ({})", effects.len(), words.join(", "))
}

fn trailer(effect: &Effect) -> String {
    let Version { uid, resource_version, field_manager } = &effect.version;
    let mut text = format!("X-ConfigButler-Object: {} uid={uid} resourceVersion={resource_version}", effect.key);
    if let Some(manager) = field_manager {
        let _ = write!(text, " fieldManager={}", one_line(manager));
    }
    text + "\n"
}

/// A value that somebody else chose must not become a trailer of its own.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(author: Author, effects: &[(Operation, &str)], manager: Option<&str>, expected: Expect) {
        let operator = Operator {
            name: "op".into(),
            email: "op@example.com".into(),
            noreply_domain: "users.noreply.c".into(),
            controller_namespace: "ns".into(),
            controller_name: "tidegate".into(),
            instance_id: "pod\nX-Forged: 1".into(),
        };
        let version =
            Version { uid: "u-1".into(), resource_version: "7".into(), field_manager: manager.map(Into::into) };
        let key = |name: &str| ResourceKey::new("", "v1", "configmaps", Some("default"), name);
        let effect = |(operation, name): &(Operation, &str)| Effect {
            operation: *operation,
            key: key(name),
            version: version.clone(),
        };
        let effects: Vec<_> = effects.iter().map(effect).collect();
        expected.assert_eq(&message(&operator, "c-1", &author, &effects));
    }

    #[test]
    fn one_object() {
        let alice = Author::User { name: "alice".into(), email: "alice@example.com".into() };
        check(
            alice,
            &[(Operation::Create, "app-config")],
            None,
            expect![[r#"
                [CREATE] v1/configmaps/default/app-config by user/alice

                X-ConfigButler-ClusterUID: c-1
                X-ConfigButler-ControllerNS: ns
                X-ConfigButler-ControllerName: tidegate
                X-ConfigButler-InstanceID: pod X-Forged: 1
                X-ConfigButler-Object: v1/configmaps/default/app-config uid=u-1 resourceVersion=7
            "#]],
        );
    }

    #[test]
    fn several_people_have_one_change_together() {
        let user = |name: &str| Author::User { name: name.into(), email: format!("{name}@example.com").into() };
        check(
            user("ann").and(&user("bob")).and(&Author::Unknown),
            &[(Operation::Update, "a")],
            None,
            expect![[r#"
                [UPDATE] v1/configmaps/default/a by user/ann, user/bob, unknown

                X-ConfigButler-ClusterUID: c-1
                X-ConfigButler-ControllerNS: ns
                X-ConfigButler-ControllerName: tidegate
                X-ConfigButler-InstanceID: pod X-Forged: 1
                X-ConfigButler-Object: v1/configmaps/default/a uid=u-1 resourceVersion=7
                Co-authored-by: ann <ann@example.com>
                Co-authored-by: bob <bob@example.com>
            "#]],
        );
    }

    #[test]
    fn several_objects() {
        check(
            Author::Unknown,
            &[(Operation::Create, "a"), (Operation::Delete, "b"), (Operation::Create, "c")],
            Some("kubectl-edit"),
            expect![[r#"
                [SYNC] 3 objects (2 created, 1 deleted) by unknown

                [CREATE] v1/configmaps/default/a
                [DELETE] v1/configmaps/default/b
                [CREATE] v1/configmaps/default/c

                X-ConfigButler-ClusterUID: c-1
                X-ConfigButler-ControllerNS: ns
                X-ConfigButler-ControllerName: tidegate
                X-ConfigButler-InstanceID: pod X-Forged: 1
                X-ConfigButler-Object: v1/configmaps/default/a uid=u-1 resourceVersion=7 fieldManager=kubectl-edit
                X-ConfigButler-Object: v1/configmaps/default/b uid=u-1 resourceVersion=7 fieldManager=kubectl-edit
                X-ConfigButler-Object: v1/configmaps/default/c uid=u-1 resourceVersion=7 fieldManager=kubectl-edit
            "#]],
        );
    }

    #[test]
    fn a_summary_of_one_kind() {
        let account = Author::User { name: "system:serviceaccount:ns:name\n".into(), email: "".into() };
        check(
            account,
            &[(Operation::Update, "a"), (Operation::Update, "b")],
            None,
            expect![[r#"
                [UPDATE] 2 objects by user/system:serviceaccount:ns:name 

                [UPDATE] v1/configmaps/default/a
                [UPDATE] v1/configmaps/default/b

                X-ConfigButler-ClusterUID: c-1
                X-ConfigButler-ControllerNS: ns
                X-ConfigButler-ControllerName: tidegate
                X-ConfigButler-InstanceID: pod X-Forged: 1
                X-ConfigButler-Object: v1/configmaps/default/a uid=u-1 resourceVersion=7
                X-ConfigButler-Object: v1/configmaps/default/b uid=u-1 resourceVersion=7
            "#]],
        );
    }
}

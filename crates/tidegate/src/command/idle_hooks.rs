//! Hooks that do not run, for `tidegate controllers`.
//!
//! One that never started has no controller, so there is no report of it: its
//! own object says that it does not run, and why.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_client::{Client, ClientError, Code};
use tidegate_model::terminal::one_line;

/// One page: each of them is somebody's program.
const HOOKS_MAX: usize = 1_000;
/// The rest is in the table.
const EXPLAINED_MAX: usize = 10;

const HOOKS: &str = "query($first: Int) { \
    resources(apiVersion: \"tidegate.dev/v1\", kind: \"ReconcileHook\", first: $first) { nodes { object } } }";

/// A hook whose `Ready` is false.
#[derive(PartialEq, Eq, Debug)]
pub struct IdleHook {
    pub name: String,
    pub target: String,
    pub reason: String,
    message: String,
}

#[derive(Deserialize)]
struct Data {
    resources: Nodes,
}

#[derive(Deserialize)]
struct Nodes {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    object: Value,
}

/// None for who may not read hooks.
pub async fn idle_hooks(client: &Client) -> Result<Vec<IdleHook>, ClientError> {
    match client.query::<Data>(HOOKS, json!({"first": HOOKS_MAX})).await {
        Ok(data) => Ok(data.resources.nodes.iter().filter_map(|node| IdleHook::read(&node.object)).collect()),
        Err(ClientError::Refused(refusal)) if refusal.code() == Code::Forbidden => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Those that none of the controllers of these names is of.
pub fn without_controller<'h>(hooks: &'h [IdleHook], controllers: &[&str]) -> Vec<&'h IdleHook> {
    let known: HashSet<&str> = controllers.iter().filter_map(|name| hook_of(name)).collect();
    hooks.iter().filter(|hook| !known.contains(&*hook.name)).collect()
}

/// Of `hook.<name>.<hash>`, where a name may have dots.
fn hook_of(controller: &str) -> Option<&str> {
    Some(controller.strip_prefix("hook.")?.rsplit_once('.')?.0)
}

/// A line for each, or for the first of them.
pub fn explained(hooks: &[IdleHook]) -> Vec<String> {
    let line = |hook: &IdleHook| {
        let IdleHook { name, reason, message, .. } = hook;
        one_line(&format!("hook {name} does not run ({reason}): {message}")).into_owned()
    };
    let mut lines: Vec<String> = hooks.iter().take(EXPLAINED_MAX).map(line).collect();
    if hooks.len() > EXPLAINED_MAX {
        let more = hooks.len() - EXPLAINED_MAX;
        lines.push(format!("{more} more do not run\n  next: tidegate get hooks -o yaml"));
    }
    lines
}

impl IdleHook {
    fn read(hook: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut conditions = hook["status"]["conditions"].as_array()?.iter();
        let ready = conditions.find(|condition| condition["type"] == "Ready")?;
        (ready["status"] == "False").then(|| Self {
            name: text(&hook["metadata"]["name"]),
            target: text(&hook["spec"]["target"]["kind"]),
            reason: text(&ready["reason"]),
            message: text(&ready["message"]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(name: &str) -> IdleHook {
        let (target, reason, message) =
            ("Site".into(), "KindNotFound".into(), "there is none:\u{1b}[2J push it".into());
        IdleHook { name: name.into(), target, reason, message }
    }

    #[test]
    fn a_hook_is_known_by_its_whole_name() {
        let hooks = ["a", "a.b", "c"].map(hook);
        for (controllers, expected) in [
            (&["products"][..], &["a", "a.b", "c"][..]),
            (&["hook.a.0123456789abcdef"], &["a.b", "c"]),
            (&["hook.a.b.0123456789abcdef", "hook.c.f"], &["a"]),
        ] {
            let names: Vec<&str> = without_controller(&hooks, controllers).iter().map(|hook| &*hook.name).collect();
            assert_eq!(names, expected, "{controllers:?}");
        }
    }

    #[test]
    fn only_what_is_said_not_to_run() {
        let with =
            |status: Value| json!({"metadata": {"name": "a"}, "spec": {"target": {"kind": "Site"}}, "status": status});
        let ready = |status: &str| with(json!({"conditions": [{"type": "Ready", "status": status, "reason": "R"}]}));
        let read = IdleHook::read(&ready("False")).unwrap();
        assert_eq!((&*read.name, &*read.target, &*read.reason), ("a", "Site", "R"));
        for object in [ready("True"), with(json!({})), with(json!({"conditions": 1})), json!(null)] {
            assert_eq!(IdleHook::read(&object), None, "{object}");
        }
    }

    #[test]
    fn a_line_each_and_an_end() {
        assert_eq!(explained(&[hook("a")]), ["hook a does not run (KindNotFound): there is none:\\033[2J push it"]);
        let many: Vec<IdleHook> = (0..12).map(|at| hook(&at.to_string())).collect();
        let lines = explained(&many);
        assert!(lines.len() == 11 && lines[10].starts_with("2 more do not run"), "{lines:?}");
    }
}

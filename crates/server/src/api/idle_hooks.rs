//! Hooks that do not run, as their own objects say it.
//!
//! One that never started has no controller, and so no report: without this
//! nobody would see it among the others.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;
use tidegate_model::GroupResource;
use tidegate_runtime::ControllerReport;
use tidegate_store::{Selection, StoreError, View};

use super::SeenController;

/// Each of them is somebody's program; what comes after is not looked at.
const HOOKS_MAX: usize = 1_000;

/// Those whose `Ready` is false, by name.
pub(super) struct IdleHooks(BTreeMap<String, IdleHook>);

struct IdleHook {
    api_version: String,
    kind: String,
    reason: String,
    message: String,
}

pub(super) fn resource() -> GroupResource {
    GroupResource::new("tidegate.dev", "reconcilehooks")
}

impl IdleHooks {
    pub fn read(view: &View) -> Result<Self, StoreError> {
        let mut idle = BTreeMap::new();
        for stored in view.scan(&Selection::all(resource()), None).take(HOOKS_MAX) {
            let stored = stored?;
            let hook = serde_json::from_slice(&stored.json).ok().and_then(|hook| IdleHook::read(&hook));
            idle.extend(hook.map(|hook| (stored.key.name.to_string(), hook)));
        }
        Ok(Self(idle))
    }

    /// What is wrong and what to do, of a controller that was stopped.
    pub fn message_of(&self, report: &ControllerReport) -> Option<String> {
        let hook = hook_of(&report.controller).filter(|_| report.stopped.is_some())?;
        Some(self.0.get(hook)?.message.clone())
    }

    /// Those that no controller is of.
    pub fn unborn(self, seen: &[SeenController]) -> Vec<SeenController> {
        let known: HashSet<&str> = seen.iter().filter_map(|seen| hook_of(&seen.report.controller)).collect();
        let unborn = self.0.into_iter().filter(|(name, _)| !known.contains(&**name));
        unborn.map(|(name, hook)| hook.into_seen(&name)).collect()
    }
}

/// Of `hook.<name>.<hash>`, where a name may have dots.
fn hook_of(controller: &str) -> Option<&str> {
    Some(controller.strip_prefix("hook.")?.rsplit_once('.')?.0)
}

impl IdleHook {
    fn read(hook: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut conditions = hook["status"]["conditions"].as_array()?.iter();
        let ready = conditions.find(|condition| condition["type"] == "Ready")?;
        let target = &hook["spec"]["target"];
        (ready["status"] == "False").then(|| Self {
            api_version: text(&target["apiVersion"]),
            kind: text(&target["kind"]),
            reason: text(&ready["reason"]),
            message: text(&ready["message"]),
        })
    }

    fn into_seen(self, name: &str) -> SeenController {
        let Self { api_version, kind, reason, message } = self;
        let report = ControllerReport {
            controller: format!("hook.{name}"),
            api_version,
            kind,
            stopped: Some(reason),
            ..ControllerReport::default()
        };
        let (behind_versions, behind_since_ms, leads) = (None, None, false);
        SeenController { report, behind_versions, behind_since_ms, leads, stopped_message: Some(message) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn idle(names: &[&str]) -> IdleHooks {
        let hook = || IdleHook::read(&hook(json!({"conditions": [{"type": "Ready", "status": "False"}]}))).unwrap();
        IdleHooks(names.iter().map(|name| ((*name).to_owned(), hook())).collect())
    }

    fn hook(status: Value) -> Value {
        json!({"metadata": {"name": "a"}, "spec": {"target": {"kind": "Site"}}, "status": status})
    }

    fn seen(controller: &str) -> SeenController {
        let report = ControllerReport { controller: controller.into(), ..ControllerReport::default() };
        SeenController { report, behind_versions: None, behind_since_ms: None, leads: true, stopped_message: None }
    }

    #[test]
    fn a_hook_is_known_by_its_whole_name() {
        for (controllers, expected) in [
            (&["products"][..], &["hook.a", "hook.a.b", "hook.c"][..]),
            (&["hook.a.0123456789abcdef"], &["hook.a.b", "hook.c"]),
            (&["hook.a.b.0123456789abcdef", "hook.c.f"], &["hook.a"]),
        ] {
            let seen: Vec<SeenController> = controllers.iter().map(|name| seen(name)).collect();
            let unborn = idle(&["a", "a.b", "c"]).unborn(&seen);
            let names: Vec<&str> = unborn.iter().map(|seen| &*seen.report.controller).collect();
            assert_eq!(names, expected, "{controllers:?}");
        }
    }

    #[test]
    fn only_what_is_said_not_to_run() {
        let ready = |status: &str| hook(json!({"conditions": [{"type": "Ready", "status": status, "reason": "R"}]}));
        let read = IdleHook::read(&ready("False")).unwrap();
        assert_eq!((&*read.kind, &*read.reason), ("Site", "R"));
        for object in [ready("True"), hook(json!({})), hook(json!({"conditions": 1})), json!(null)] {
            assert!(IdleHook::read(&object).is_none(), "{object}");
        }
    }
}

//! What a reconciler reports of an object: its conditions and what it
//! resolved.
//!
//! Conditions follow kstatus: `Ready` sums up; `Stalled` is present only when
//! somebody has to act; `Reconciling` is never left behind. All of them say
//! which generation they are about.

use chrono::DateTime;
use serde_json::{Map, Value, json};
use tidegate_model::{Object, StatusMerge, merge_status};
use xxhash_rust::xxh3::Xxh3;

/// A message names so many culprits; the rest is counted.
const NAMED_MAX: usize = 5;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Such as `CategoryResolved`.
    pub kind: &'static str,
    pub holds: bool,
    pub reason: &'static str,
    pub message: String,
}

impl Condition {
    pub fn holds(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, holds: true, reason, message: message.into() }
    }

    pub fn fails(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, holds: false, reason, message: message.into() }
    }
}

/// Everything that one reconciler says of one object.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    generation: i64,
    /// With `Ready`, in the order of their types.
    conditions: Vec<Condition>,
    /// `null` where a field has nothing to say.
    resolved: Option<Value>,
}

/// Conditions that every report owns, whether it sets them or not.
const SUMMARY: [&str; 3] = ["Ready", "Reconciling", "Stalled"];

impl Report {
    /// `Ready` and `Stalled` follow from `conditions`: the first that fails is
    /// the reason of both.
    pub fn new(generation: i64, conditions: Vec<Condition>, resolved: Option<Value>) -> Self {
        let failed = conditions.iter().find(|condition| !condition.holds);
        let summary = match failed {
            None => vec![Condition::holds("Ready", "Reconciled", "")],
            Some(failed) => vec![
                Condition::fails("Ready", failed.reason, failed.message.clone()),
                Condition::holds("Stalled", failed.reason, failed.message.clone()),
            ],
        };
        let mut conditions: Vec<_> = conditions.into_iter().filter(|condition| condition.kind != "Ready").collect();
        conditions.extend(summary);
        conditions.sort_by_key(|condition| condition.kind);
        Self { generation, conditions, resolved }
    }

    pub fn generation(&self) -> i64 {
        self.generation
    }

    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|condition| condition.holds)
    }

    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    pub fn resolved(&self) -> Option<&Value> {
        self.resolved.as_ref()
    }

    /// The merge patch that makes a status say this.
    pub fn patch(&self) -> Value {
        let mut conditions: Vec<Value> = self.conditions.iter().map(|condition| self.entry(condition)).collect();
        let unset = SUMMARY.iter().filter(|kind| self.condition(kind).is_none());
        conditions.extend(unset.map(|kind| json!({"type": kind, "$patch": "delete"})));
        let mut patch = json!({"observedGeneration": self.generation, "conditions": conditions});
        if let (Some(resolved), Value::Object(patch)) = (&self.resolved, &mut patch) {
            patch.insert("resolved".into(), resolved.clone());
        }
        patch
    }

    /// Equal to [`digest`] of a status exactly if that status says this.
    pub fn digest(&self) -> u64 {
        let mut hash = StatusHash::new(Some(self.generation));
        for condition in &self.conditions {
            let status = if condition.holds { "True" } else { "False" };
            hash.condition(condition.kind, status, condition.reason, &condition.message, Some(self.generation));
        }
        hash.resolved(self.resolved.as_ref());
        hash.finish()
    }

    fn entry(&self, condition: &Condition) -> Value {
        json!({
            "type": condition.kind,
            "status": if condition.holds { "True" } else { "False" },
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": self.generation,
        })
    }
}

/// Of what a report owns in `status`: the conditions of `owned` types, those
/// of the summary, `resolved`, `observedGeneration`.
pub fn digest(status: Option<&Value>, owned: &[&str]) -> u64 {
    let field = |name: &str| status.and_then(|status| status.get(name));
    let mut hash = StatusHash::new(field("observedGeneration").and_then(Value::as_i64));
    let mut conditions: Vec<&Value> = field("conditions").and_then(Value::as_array).into_iter().flatten().collect();
    let text = |condition: &Value, name: &str| condition.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    conditions.retain(|condition| {
        let kind = text(condition, "type");
        owned.contains(&kind.as_str()) || SUMMARY.contains(&kind.as_str())
    });
    conditions.sort_by_key(|condition| text(condition, "type"));
    for condition in conditions {
        let [kind, status, reason, message] = ["type", "status", "reason", "message"].map(|name| text(condition, name));
        let generation = condition.get("observedGeneration").and_then(Value::as_i64);
        hash.condition(&kind, &status, &reason, &message, generation);
    }
    hash.resolved(field("resolved"));
    hash.finish()
}

/// `patch`, unless the object's status says it already.
pub(crate) fn needed(object: &Object, patch: Value) -> Option<Value> {
    let context = StatusMerge { now: DateTime::UNIX_EPOCH, generation: object.generation() };
    let merged = merge_status(object.status(), &patch, &context);
    // What cannot be merged is for the server to refuse, with its reasons.
    merged.map_or(true, |merged| merged.changed).then_some(patch)
}

struct StatusHash(Xxh3);

impl StatusHash {
    fn new(generation: Option<i64>) -> Self {
        let mut hash = Self(Xxh3::new());
        hash.number(generation);
        hash
    }

    fn condition(&mut self, kind: &str, status: &str, reason: &str, message: &str, generation: Option<i64>) {
        for text in [kind, status, reason, message] {
            self.text(text);
        }
        self.number(generation);
    }

    /// A field that is `null` counts as absent.
    fn resolved(&mut self, resolved: Option<&Value>) {
        let Some(Value::Object(fields)) = resolved else { return };
        let mut fields: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
        fields.sort_by_key(|(name, _)| *name);
        for (name, value) in fields {
            self.text(name);
            self.text(&canonical(value).to_string());
        }
    }

    fn number(&mut self, number: Option<i64>) {
        self.0.update(&[u8::from(number.is_some())]);
        self.0.update(&number.unwrap_or(0).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    fn finish(self) -> u64 {
        self.0.digest()
    }
}

/// The order of an object's fields does not matter.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            Value::Object(
                sorted.into_iter().map(|(name, value)| (name.clone(), canonical(value))).collect::<Map<_, _>>(),
            )
        }
        other => other.clone(),
    }
}

/// `a, b, c and 4 more`.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut names = names.into_iter();
    let shown: Vec<&str> = names.by_ref().take(NAMED_MAX).collect();
    match names.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(before: Option<&Value>, report: &Report) -> (Value, bool) {
        let context = StatusMerge { now: Default::default(), generation: 9 };
        let merged = merge_status(before, &report.patch(), &context).unwrap();
        (merged.status, merged.changed)
    }

    fn report(generation: i64, holds: bool, category: Option<&str>) -> Report {
        let condition = Condition { kind: "CategoryResolved", holds, reason: "Because", message: "why".into() };
        Report::new(generation, vec![condition], Some(json!({"category": category, "variantCount": 2})))
    }

    #[test]
    fn a_patched_status_has_the_reports_digest() {
        let reports = [report(1, true, Some("a")), report(1, false, None), report(2, true, Some("b"))];
        let others = json!({"conditions": [{"type": "Other", "status": "True", "reason": "X", "message": ""}], "x": 1});
        for first in &reports {
            let (status, _) = merged(Some(&others), first);
            assert_eq!(digest(Some(&status), &["CategoryResolved"]), first.digest());
            for second in &reports {
                let (status, changed) = merged(Some(&status), second);
                assert_eq!(digest(Some(&status), &["CategoryResolved"]), second.digest());
                assert_eq!(changed, first != second);
                assert_eq!(first.digest() == second.digest(), first == second);
                assert_eq!(status["x"], 1);
            }
        }
    }

    #[test]
    fn a_failed_condition_stalls() {
        let (status, _) = merged(None, &report(1, false, None));
        let shown: Vec<_> = status["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap(), c["reason"].as_str().unwrap()))
            .collect();
        assert_eq!(
            shown,
            [("CategoryResolved", "False", "Because"), ("Ready", "False", "Because"), ("Stalled", "True", "Because")]
        );
        let (status, _) = merged(Some(&status), &report(1, true, None));
        let shown: Vec<_> =
            status["conditions"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
        assert_eq!(shown, ["CategoryResolved", "Ready"]);
    }

    #[test]
    fn long_lists_are_counted() {
        assert_eq!(listed(["a", "b"]), "a, b");
        assert_eq!(listed(["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}

//! When to look, and what is said.

use super::*;

fn object(remote: bool, status: Value) -> Object {
    let spec = if remote { json!({"remote": {"url": "https://a/b", "interval": "1m"}}) } else { json!({}) };
    let metadata = json!({"name": "a", "namespace": "shop", "uid": "u", "generation": 3});
    let value = json!({"apiVersion": "tidegate.dev/v1", "kind": "Repository", "metadata": metadata, "spec": spec, "status": status});
    Object::from_value(value).unwrap()
}

fn outcome(reason: &str, commit: Option<&str>) -> Outcome {
    Outcome {
        in_force: reason == "InForce",
        reason: reason.into(),
        message: format!("it is {reason}"),
        problems: if reason == "Invalid" { vec!["a.yaml:5: spec.size: too much".into()] } else { Vec::new() },
        commit: commit.map(Into::into),
        objects: Some(2),
        files: Some(1),
    }
}

fn name(step: &Step) -> &'static str {
    match step {
        Step::Wait(Next::AwaitChange) => "await",
        Step::Wait(Next::After(_)) => "after",
        Step::Take(_) => "take",
        Step::Look => "look",
    }
}

#[tokio::test]
async fn when_to_look() {
    let now = Instant::now();
    let remembered = |object: &Object, reason: &str| Memory::new(object, outcome(reason, Some("1")), None, now, 0.5);
    let (early, late) = (now + Duration::from_secs(50), now + Duration::from_secs(61));
    let quiet = json!({"inForce": {"commit": "1"}, "observedCommit": "1", "syncRequestedAt": "2026-01-01T00:00:00Z", "syncHandledAt": "2026-01-01T00:00:00Z"});
    let pushed = json!({"inForce": {"commit": "2"}, "observedCommit": "1"});
    let asked =
        json!({"syncRequestedAt": "2026-01-01T00:00:00.000002Z", "syncHandledAt": "2026-01-01T00:00:00.000001Z"});
    for (remote, status, reason, at, expected) in [
        (true, &quiet, "InForce", early, "after"),
        (true, &quiet, "InForce", late, "look"),
        (true, &asked, "InForce", early, "look"),
        (true, &asked, "Unreachable", early, "look"),
        // Somebody else's sync.
        (true, &pushed, "InForce", early, "take"),
        (true, &pushed, "Invalid", early, "take"),
        (false, &quiet, "InForce", late, "await"),
        (false, &pushed, "InForce", early, "take"),
        (false, &pushed, "Invalid", early, "look"),
        (false, &quiet, "Invalid", late, "look"),
    ] {
        let object = object(remote, status.clone());
        let step = step(&object, Some(&remembered(&object, reason)), at);
        assert_eq!(name(&step), expected, "{remote} {status} {reason}");
    }
    let first = object(true, json!({}));
    assert_eq!(name(&step(&first, None, now)), "look");
    let mut changed = first.clone();
    changed.metadata_mut().insert("generation".into(), 4.into());
    assert_eq!(name(&step(&changed, Some(&remembered(&first, "InForce")), now)), "look");
}

#[tokio::test]
async fn a_host_that_stays_away_is_asked_more_and_more_seldom() {
    let (now, object) = (Instant::now(), object(true, json!({})));
    let (mut memory, mut delays) = (None, Vec::new());
    for _ in 0..6 {
        let next = Memory::new(&object, outcome("Unreachable", None), memory.as_ref(), now, 0.0);
        delays.push(next.delay.unwrap().as_secs());
        memory = Some(next);
    }
    assert_eq!(delays, [60, 120, 240, 480, 900, 900]);
    let healed = Memory::new(&object, outcome("InForce", Some("1")), memory.as_ref(), now, 1.0);
    assert_eq!(healed.next(now), Next::After(Duration::from_secs(54)));
}

#[tokio::test]
async fn what_is_said() {
    let now = Instant::now();
    let say = |status: Value, reason: &str, commit| {
        let object = object(true, status);
        let memory = Memory::new(&object, outcome(reason, commit), None, now, 0.0);
        report(&object, 3, Some("2026-01-01T00:00:00Z"), &memory, DateTime::UNIX_EPOCH)
    };
    let condition = |patch: &Value, kind: &str| {
        let entry = patch["conditions"].as_array().unwrap().iter().find(|entry| entry["type"] == kind).unwrap().clone();
        (
            entry["status"].as_str().unwrap_or("gone").to_owned(),
            entry["message"].as_str().unwrap_or_default().to_owned(),
        )
    };

    let good = say(json!({}), "InForce", Some("1")).unwrap();
    assert_eq!(condition(&good, "Synced").0, "True");
    assert_eq!(condition(&good, "Stalled").0, "gone");
    assert_eq!((&good["observedCommit"], &good["objects"], &good["files"]), (&json!("1"), &json!(2), &json!(1)));
    assert_eq!(good["lastFetchTime"], "1970-01-01T00:00:00Z");
    assert_eq!(good["syncHandledAt"], "2026-01-01T00:00:00Z");
    // Said once; a fetch that found the same writes nothing.
    let context = StatusMerge { now: DateTime::UNIX_EPOCH, generation: 3 };
    let said = merge_status(None, &good, &context).unwrap().status;
    assert_eq!(say(said.clone(), "InForce", Some("1")), None);

    let bad = say(said.clone(), "Invalid", Some("2")).unwrap();
    assert_eq!(condition(&bad, "Synced"), ("False".into(), "it is Invalid\na.yaml:5: spec.size: too much".into()));
    assert_eq!(condition(&bad, "Stalled").0, "True");
    assert_eq!(bad["attemptedCommit"], "2");
    assert!(bad.get("observedCommit").is_none(), "the last good one stays");

    let away = say(said, "Unreachable", None).unwrap();
    assert_eq!(
        condition(&away, "Ready"),
        ("False".into(), "it is Unreachable; the next attempt is within 60 s".into())
    );
    assert_eq!(condition(&away, "Reconciling").0, "True");
    assert!(away.get("lastFetchTime").is_none() && away.get("attemptedCommit").is_none());
}

#[tokio::test]
async fn a_message_has_its_limit() {
    let object = object(true, json!({}));
    let mut outcome = outcome("Invalid", Some("1"));
    outcome.problems = vec!["ü".repeat(1000); 50];
    let memory = Memory::new(&object, outcome, None, Instant::now(), 0.0);
    assert!(message(&memory).len() <= MESSAGE_BYTES_MAX + 10);
}

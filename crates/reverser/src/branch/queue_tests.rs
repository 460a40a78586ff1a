use super::*;

const BYTES_MAX: usize = 100;

fn state(content: &str) -> State {
    let version = Version { uid: "u".into(), resource_version: content.into(), field_manager: None };
    State { version, yaml: content.to_owned().into() }
}

fn key(name: &str) -> ResourceKey {
    ResourceKey::new("", "v1", "configmaps", Some("a"), name)
}

fn user(name: &str) -> Author {
    Author::User { name: name.into(), email: "".into() }
}

fn change(name: &str, author: &str, content: &str) -> Change {
    let what = match content {
        "" => What::Delete(state("").version),
        content => What::Put(state(content)),
    };
    Change { key: key(name), what, author: user(author), seen_at: Instant::now() }
}

/// What waits, as `name@author=content` (`?` is to be read again, `-` gone).
fn shown(queue: &Queue) -> String {
    let wanted = |wanted: &Wanted| match wanted {
        Wanted::State(state) => String::from_utf8_lossy(&state.yaml).into_owned(),
        Wanted::Reread(_) => "?".into(),
        Wanted::Gone(_) => "-".into(),
    };
    let one = |pending: Pending| match pending.item {
        Item::Change { key, wanted: of, author: Author::User { name, .. }, .. } => {
            format!("{}@{name}={}", key.name, wanted(&of))
        }
        Item::Change { .. } => "unknown".into(),
        Item::Seed { objects, .. } => {
            let objects: Vec<_> = objects.iter().map(|(key, of)| format!("{}={}", key.name, wanted(of))).collect();
            format!("seed({})", objects.join(","))
        }
    };
    queue.batch().0.into_iter().map(one).collect::<Vec<_>>().join(" ")
}

fn dest(name: &str) -> DestinationId {
    DestinationId(name.into())
}

fn check(changes: &[(&str, &str, &str)], expected: &str) -> Queue {
    let mut queue = Queue::new(BYTES_MAX);
    for (name, author, content) in changes {
        queue.change(dest("d"), change(name, author, content));
    }
    assert_eq!(shown(&queue), expected);
    queue
}

#[test]
fn one_persons_changes_of_one_object_are_one() {
    check(&[("k", "ann", "1"), ("k", "ann", "2")], "k@ann=2");
    check(&[("k", "ann", "1"), ("l", "bob", "1"), ("k", "ann", "2")], "l@bob=1 k@ann=2");
    check(&[("k", "ann", "1"), ("k", "bob", "2"), ("k", "ann", "1")], "k@ann=1 k@bob=2 k@ann=1");
    check(&[("k", "ann", "1"), ("k", "ann", "")], "k@ann=-");
    check(&[("k", "ann", "1"), ("k", "bob", "2"), ("k", "bob", "3")], "k@ann=1 k@bob=3");
}

#[test]
fn beyond_the_limit_only_keys_are_kept() {
    let long = "x".repeat(BYTES_MAX - 1);
    let queue =
        check(&[("k", "ann", &long), ("l", "bob", "12"), ("m", "bob", "1")], &format!("k@ann={long} l@bob=? m@bob=1"));
    assert_eq!((queue.files(), queue.bytes()), (3, BYTES_MAX));
    // Full: several people's changes of one object are kept as the last.
    let full = "x".repeat(BYTES_MAX);
    check(
        &[("k", "ann", &full), ("l", "ann", "1"), ("l", "bob", "2"), ("l", "ann", "3")],
        &format!("k@ann={full} l@ann=?"),
    );
}

#[test]
fn nothing_leaves_before_its_push() {
    let mut queue = check(&[("k", "ann", "1"), ("l", "ann", "1")], "k@ann=1 l@ann=1");
    let (batch, ticket) = queue.batch();
    assert_eq!(batch.len(), 2);
    queue.change(dest("d"), change("k", "ann", "2"));
    queue.change(dest("d"), change("m", "ann", "1"));
    assert_eq!(shown(&queue), "l@ann=1 k@ann=2 m@ann=1");
    queue.acknowledge(ticket);
    assert_eq!(shown(&queue), "k@ann=2 m@ann=1");
    queue.change(dest("d"), change("k", "ann", "3"));
    assert_eq!(shown(&queue), "m@ann=1 k@ann=3");
    queue.acknowledge(queue.batch().1);
    assert_eq!((shown(&queue).as_str(), queue.files(), queue.bytes()), ("", 0, 0));
    assert!(queue.latest.is_empty() && queue.seeds.is_empty());
}

#[test]
fn a_seed_stands_in_line_and_the_last_of_a_scope_counts() {
    let mut queue = Queue::new(BYTES_MAX);
    let listed = |name: &str, content: &str| Listed { key: key(name), state: state(content) };
    queue.seed(dest("d"), Scope::Whole, vec![listed("k", "1")].into_iter());
    queue.change(dest("d"), change("k", "ann", "2"));
    assert_eq!(shown(&queue), "seed(k=1) k@ann=2");
    queue.seed(dest("e"), Scope::Whole, std::iter::empty());
    queue.seed(dest("d"), Scope::Whole, vec![listed("k", "2"), listed("l", &"x".repeat(99))].into_iter());
    assert_eq!(shown(&queue), "k@ann=2 seed() seed(k=2,l=?)");
    assert_eq!(queue.files(), 3);
    queue.forget(&dest("d"));
    assert_eq!((shown(&queue).as_str(), queue.files(), queue.bytes()), ("seed()", 0, 0));
}

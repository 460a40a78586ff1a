use super::*;

/// Room for the contents of the tests and for ten changes without any.
const BYTES_MAX: usize = 10 * CHANGE_BYTES;

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
        Wanted::Spooled { content, .. } => format!("{content:?}"),
        Wanted::Reread { .. } => "?".into(),
        Wanted::Gone(_) => "-".into(),
    };
    let one = |pending: Pending| match pending.item {
        Item::Change { key, wanted: of, author, .. } => {
            let names: Vec<_> = author.each().iter().map(author_name).collect();
            format!("{}@{}={}", key.name, names.join("+"), wanted(&of))
        }
        Item::Seed { objects, .. } => {
            let objects: Vec<_> = objects.iter().map(|(key, of)| format!("{}={}", key.name, wanted(of))).collect();
            format!("seed({})", objects.join(","))
        }
    };
    queue.batch().0.into_iter().map(one).collect::<Vec<_>>().join(" ")
}

fn author_name(author: &Author) -> String {
    if let Author::User { name, .. } = author { name.to_string() } else { "unknown".into() }
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
    let long = "x".repeat(BYTES_MAX - 2 * CHANGE_BYTES);
    let more = "y".repeat(CHANGE_BYTES + 1);
    let queue =
        check(&[("k", "ann", &long), ("l", "bob", &more), ("m", "bob", "1")], &format!("k@ann={long} l@bob=? m@bob=?"));
    assert_eq!((queue.files(), queue.bytes()), (3, long.len()));
}

#[test]
fn without_the_states_between_a_change_is_everybodys() {
    let full = "x".repeat(BYTES_MAX - CHANGE_BYTES);
    let check = |changes: &[(&str, &str, &str)], expected: &str| {
        let all: Vec<_> = std::iter::once(("k", "ann", full.as_str())).chain(changes.iter().copied()).collect();
        check(&all, &format!("k@ann={full} {expected}"))
    };
    check(&[("l", "ann", "1"), ("l", "bob", "2"), ("l", "ann", "3")], "l@ann+bob=?");
    check(&[("l", "ann", "1"), ("l", "ann", "2")], "l@ann=?");
    // A deletion is the deleter's, and what is made anew is its maker's.
    check(&[("l", "ann", "1"), ("l", "bob", "")], "l@bob=-");
    check(&[("l", "ann", "1"), ("l", "bob", ""), ("l", "eve", "3")], "l@eve=?");
}

#[test]
fn what_is_read_again_takes_in_every_later_change() {
    let full = "x".repeat(BYTES_MAX - CHANGE_BYTES);
    let mut queue = check(&[("k", "ann", &full)], &format!("k@ann={full}"));
    let (_, first) = queue.batch();
    queue.change(dest("d"), change("l", "ann", "1"));
    queue.acknowledge(first);
    // There is room again: the state is kept, and both made it.
    queue.change(dest("d"), change("l", "bob", "2"));
    assert_eq!(shown(&queue), "l@ann+bob=2");
}

#[test]
fn changes_without_content_are_bounded_by_the_number_of_objects() {
    let mut queue = Queue::new(BYTES_MAX);
    for at in 0..1_000 {
        queue.change(dest("d"), change("k", if at % 2 == 0 { "ann" } else { "bob" }, ""));
    }
    assert!(queue.batch().0.len() <= BYTES_MAX / CHANGE_BYTES + 1, "{}", queue.batch().0.len());
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
    let listed = |name: &str, content: &str| Listed::new(key(name), state(content));
    queue.seed(dest("d"), Scope::Whole, vec![listed("k", "1")].into_iter());
    queue.change(dest("d"), change("k", "ann", "2"));
    assert_eq!(shown(&queue), "seed(k=1) k@ann=2");
    queue.seed(dest("e"), Scope::Whole, std::iter::empty());
    queue.seed(dest("d"), Scope::Whole, vec![listed("k", "2"), listed("l", &"x".repeat(BYTES_MAX))].into_iter());
    assert_eq!(shown(&queue), "k@ann=2 seed() seed(k=2,l=?)");
    assert_eq!(queue.files(), 3);
    queue.forget(&dest("d"));
    assert_eq!((shown(&queue).as_str(), queue.files(), queue.bytes()), ("seed()", 0, 0));
}

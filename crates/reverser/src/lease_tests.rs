//! Who takes the lease, who waits, and who asks.

use super::*;

fn record(holder: &str, wanted_by: &str) -> Record {
    let text = |text: &str| text.to_owned();
    Record { holder: text(holder), renewed: text("2099"), wanted_by: text(wanted_by), wanted_at: text("2099") }
}

#[test]
fn who_takes_who_waits_and_who_asks() {
    use Decision::{Take, Wait, Want};
    use Rank::{ByHand, Replica};
    let start = Instant::now();
    let later = start + LEASE_TIME;
    for (holder, wanted_by, rank, at, expected) in [
        ("other", "", Replica, start, Wait),
        // A record that stands still expires by our clock.
        ("other", "", Replica, later, Take),
        ("", "", Replica, start, Take),
        ("me", "", Replica, start, Take),
        ("other", "", ByHand, start, Want),
        ("other", "me", ByHand, start, Want),
        ("other", "", ByHand, later, Take),
        ("", "me", ByHand, start, Take),
        // Somebody is about to take it; or was, and is no more.
        ("", "laptop", Replica, start, Wait),
        ("", "laptop", Replica, later, Take),
        ("me", "laptop", Replica, start, Wait),
    ] {
        let observed = Observed::new(record(holder, wanted_by), start);
        let case = format!("{holder:?} {wanted_by:?} {rank:?} {:?}", at - start);
        assert_eq!(decide(&observed, "me", rank, at), expected, "{case}");
    }
}

#[test]
fn each_half_of_a_record_has_its_own_age() {
    let start = Instant::now();
    let later = start + LEASE_TIME;
    let mut observed = Observed::new(record("other", "laptop"), start);
    observed.update(Record { renewed: "3000".into(), ..record("other", "laptop") }, later);
    assert_eq!((observed.held_since, observed.wanted_since), (later, start));
    observed.update(Record { wanted_at: "3000".into(), ..observed.record.clone() }, later);
    assert_eq!(observed.wanted_since, later);
}

#[test]
fn asking_and_withdrawing_leave_the_rest_alone() {
    let lease = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"holderIdentity": "x"}});
    let asked = wanted(lease.clone(), Some("me"));
    assert_eq!(super::record(&asked).wanted_by, "me");
    assert_eq!(wanted(asked, None), lease);
    assert_eq!(super::record(&wanted(json!({"metadata": {}}), Some("me"))).wanted_by, "me");
}

#[test]
fn a_term_ends_by_either_clock() {
    let term = Term::since(Stamp::now());
    assert!(term.is_on() && Term::endless().is_on());
    // As after a machine's sleep: the first clock stood still.
    term.renew(Stamp(Instant::now(), SystemTime::now() - RENEW_DEADLINE));
    assert!(!term.is_on());
    // A clock that was set back says nothing.
    term.renew(Stamp(Instant::now(), SystemTime::now() + RENEW_DEADLINE));
    assert!(term.is_on());
    // Everybody who holds it learns of its end.
    let held = term.clone();
    term.end();
    assert!(!held.is_on());
}

//! Five people, ten objects, five hundred updates: every author is right.

use serde_json::json;
use tidegate_testkit::bare;
use tidegate_testkit::cluster::{ALICE, BOB};
use tidegate_testkit::place::Place;

use crate::rig::shared;

const PEOPLE: [&str; 5] = [ALICE, BOB, "carol", "dave", "erin"];
const OBJECTS: usize = 10;
const UPDATES_PER_PERSON: usize = 100;

#[test]
fn bursts_from_five_people() {
    let place = shared().place("burst");
    for object in 0..OBJECTS {
        place.apply(&place.config_map(&format!("b{object}"), "start"));
    }
    place.rule("maps", "live", json!({"resources": ["configmaps"]}));
    place.wait_ready(&["maps"]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(write(&place));
    // One more by alice, on each: when these are there, all are.
    for object in 0..OBJECTS {
        let mut last = place.config_map(&format!("b{object}"), "end");
        last["data"]["by"] = ALICE.into();
        place.apply_as(ALICE, &last);
        place.wait_file(&place.config_map_path(&format!("b{object}")), |text| text.contains("value: end"));
    }
    check(&place);
}

/// Everybody writes to everything, flipping a value back and forth.
async fn write(place: &Place<'_>) {
    let people = PEOPLE.map(|person| {
        let writer = place.cluster.writer(person, &place.namespace);
        tokio::spawn(async move {
            for update in 0..UPDATES_PER_PERSON {
                let patch = json!({"data": {"value": (update % 2).to_string(), "by": person}});
                writer.merge(&format!("b{}", update % OBJECTS), &patch).await;
            }
        })
    });
    for person in people {
        person.await.unwrap();
    }
}

/// The content of each commit says who wrote it.
fn check(place: &Place<'_>) {
    let (mut known, mut all) = (0, 0);
    for object in 0..OBJECTS {
        let path = place.config_map_path(&format!("b{object}"));
        for commit in place.commits(&path).into_iter().skip(1) {
            let text = bare::git(&place.repository, &["show", &format!("{}:{path}", commit.id)]);
            let by = text.lines().find_map(|line| line.trim().strip_prefix("by: ")).unwrap_or_default().to_owned();
            let author = commit.author.split(' ').next().unwrap_or_default();
            all += 1;
            if author != "unknown" {
                assert_eq!(author, by, "commit {} of {path}:\n{text}", commit.id);
                known += 1;
            }
        }
    }
    println!("{known} of {all} commits have an author");
    assert!(known * 100 > all * 99, "{known} of {all} commits have an author");
}

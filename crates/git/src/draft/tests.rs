//! What is listed and compared is counted.

// A helper that fails is a test that fails.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::program::Program;

#[tokio::test]
async fn no_more_is_listed_or_compared_than_there_is_room_for() {
    let dir = tempfile::tempdir().unwrap();
    let search_path = std::env::var_os("PATH").unwrap();
    let program = Program { git: "git".into(), search_path, home: dir.path().to_owned() };
    let repository = Repository::new(program, dir.path().join("r.git"));
    repository.init("main").await.unwrap();
    let mut draft = Draft::open(&repository, None).unwrap();
    for at in 0..100 {
        draft.put(&format!("a/{}/{at}", at % 10), b"1").unwrap();
    }
    let before = draft.folder("a").unwrap();
    let person = Person::new("Ada", "ada@example.com");
    let text = CommitText { author: &person, committer: &person, time_s: 0, message: "1", signer: None };
    draft.commit(&text).unwrap();
    let after = draft.folder("a").unwrap();
    draft.save().unwrap();
    // Ten folders and a hundred files.
    draft.entries_max = 110;
    assert_eq!(draft.files("a").unwrap().len(), 100);
    assert!(!draft.is_changed(before, after, 9, |_| false).unwrap());
    draft.entries_max = 109;
    assert!(matches!(draft.files("a"), Err(DraftError::TooMany { .. })));
    assert!(matches!(draft.files_within("a", 2), Err(DraftError::TooMany { .. })));
    assert!(matches!(draft.is_changed(before, after, 9, |_| false), Err(DraftError::TooMany { .. })));
    assert_eq!(draft.files("a/3").unwrap().len(), 10, "another folder has room");
}

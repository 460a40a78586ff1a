//! Files of every format, from arbitrary bytes: read or refused, never a
//! panic; what is read survives being written, and every line is in the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_model::manifest::{Document, parse_file};
use tidegate_model::yaml;

const PATHS: [&str; 4] = ["a.yaml", "a.json", "a.md", "a.txt"];

fuzz_target!(|input: (u8, &[u8])| {
    let (choice, bytes) = input;
    let path = PATHS[usize::from(choice) % PATHS.len()];
    let lines = 1 + bytes.iter().filter(|byte| matches!(**byte, b'\n' | b'\r')).count();
    match parse_file(path, bytes) {
        Ok(documents) => documents.iter().for_each(|document| check(document, lines)),
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty());
            assert!(diagnostics.iter().all(|diagnostic| diagnostic.line.is_none_or(|line| (1..=lines + 1).contains(&line))));
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        round_trip(text);
    }
});

fn check(document: &Document<'_>, lines: usize) {
    let value = document.object.clone().into_value();
    assert_eq!(yaml::parse(&yaml::emit(&value)).as_ref(), Ok(&value));
    for path in ["", "kind", "metadata.name", "metadata.labels[a]", "spec.options[0].name", "spec.body"] {
        assert!((1..=lines + 1).contains(&document.line_of(path)), "{path}");
    }
}

fn round_trip(text: &str) {
    if let Ok(value) = yaml::parse(text) {
        let written = yaml::emit(&value);
        assert_eq!(yaml::parse(&written).as_ref(), Ok(&value), "{written}");
    }
}

//! What holds for every value and every text.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{emit, line_of, parse, parse_documents};

/// Texts made of what YAML trips over.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "yes",
        "null",
        "~",
        "0",
        "07",
        "1e3",
        "1:30",
        ".inf",
        "2024-01-01",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "\r",
        "- ",
        "-",
        "---",
        "...",
        "? ",
        ": ",
        ":",
        "#",
        " #",
        "&a",
        "*a",
        "!",
        "|",
        ">",
        "'",
        "\"",
        "%",
        "@",
        "`",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\\",
        "<<",
        "=",
        "\u{0}",
        "\u{7f}",
        "\u{85}",
        "\u{a0}",
        "\u{2028}",
        "\u{feff}",
        "é",
        "😀",
        "\u{fffe}",
    ]);
    prop_oneof![
        3 => prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let finite = any::<f64>().prop_filter("JSON has no others", |float| float.is_finite());
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<u64>().prop_map(Value::from),
        1 => finite.prop_map(Value::from),
        6 => text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_written_is_read(value in value()) {
        let text = emit(&value);
        prop_assert_eq!(parse(&text), Ok(value.clone()), "{}", text);
        prop_assert_eq!(emit(&parse(&text).unwrap()), text, "stable to the byte");
    }

    #[test]
    fn documents_follow_each_other(values in prop::collection::vec(value(), 1..4)) {
        let wrapped: Vec<_> = values.into_iter().map(|value| json!({"a": value})).collect();
        let text: String = wrapped.iter().map(|value| format!("---\n{}", emit(value))).collect();
        let read: Vec<_> = parse_documents(&text).unwrap().into_iter().map(|document| document.value).collect();
        prop_assert_eq!(read, wrapped);
    }

    #[test]
    fn json_is_yaml(value in value()) {
        // But for the characters that YAML wants escaped.
        let text = value.to_string();
        if text.chars().all(|c| (' '..='~').contains(&c)) {
            prop_assert_eq!(parse(&text), Ok(value));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in text()) {
        if let Ok(value) = parse(&text) {
            prop_assert_eq!(parse(&emit(&value)), Ok(value));
        }
        let _ = line_of(&text, "a[0].b");
    }
}

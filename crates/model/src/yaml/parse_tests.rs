//! The parser, by example: what it reads, what it refuses and where.

use serde_json::{Value, json};

use super::*;

fn check(text: &str, expected: Value) {
    assert_eq!(parse(text), Ok(expected), "{text}");
}

fn check_refused(text: &str, expected: &str) {
    assert_eq!(parse(text).map_err(|error| error.to_string()), Err(expected.into()), "{text}");
}

#[test]
fn reads_collections_and_scalars() {
    check("", json!(null));
    check("# nothing\n", json!(null));
    check("a: 1\nb: [x, 'y', \"z\\n\"]\nc:\n- d: {}\n", json!({"a": 1, "b": ["x", "y", "z\n"], "c": [{"d": {}}]}));
    check("a: |\n  one\n  two\nb: >-\n  folded\n  text\n", json!({"a": "one\ntwo\n", "b": "folded text"}));
    check("a:\nb: ~\n", json!({"a": null, "b": null}));
    check("a: 'yes'\nb: yes\nc: \"0777\"\nd: 0777\n", json!({"a": "yes", "b": true, "c": "0777", "d": 511}));
    check("{\"a\": [1, 2.5, \"\\u00e9\\ud83d\\ude00\"]}", json!({"a": [1, 2.5, "é😀"]}));
    check("\u{feff}a: 1\n", json!({"a": 1}));
    check("a: 1\r\nb: 2\r\n", json!({"a": 1, "b": 2}));
}

#[test]
fn keys_are_text_as_kubernetes_makes_them() {
    check("1: a\n", json!({"1": "a"}));
    check("0777: a\n", json!({"511": "a"}));
    check("yes: a\n", json!({"true": "a"}));
    check("1.50: a\n", json!({"1.5": "a"}));
    check("2024-01-01: a\n", json!({"2024-01-01": "a"}));
    check_refused("~: a\n", "line 1, column 1: a key is missing: null cannot be one");
    check_refused("[a]: b\n", "line 1, column 1: a key must be a scalar");
}

#[test]
fn duplicate_keys_are_refused() {
    check_refused("a: 1\nb: 2\na: 3\n", "line 3, column 1: duplicate key `a`");
    check_refused("x:\n  1: a\n  \"1\": b\n", "line 3, column 3: duplicate key `1`");
    check_refused("{a: 1, a: 2}", "line 1, column 8: duplicate key `a`");
}

#[test]
fn anchors_aliases_and_merges() {
    check("a: &x [1]\nb: *x\n", json!({"a": [1], "b": [1]}));
    check("a: &x {p: 1, q: 2}\nb:\n  q: 3\n  <<: *x\n", json!({"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}}));
    check("<<: [{p: 1}, {p: 2, q: 2}]\n", json!({"p": 1, "q": 2}));
    check("'<<': 1\n", json!({"<<": 1}));
    check("&k a: 1\nb: *k\n", json!({"a": 1, "b": "a"}));
    check_refused("<<: 1\n", "line 1, column 5: `<<` merges a map or a list of maps: quote it if it is a key");
    check_refused("a: &x [*x]\n", "line 1, column 8: an alias inside the value that it names");
    assert!(parse("a: *nowhere\n").is_err());
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let previous = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{previous}]\n"));
    }
    let error = parse(&bomb).unwrap_err();
    assert!(error.message.starts_with("anchors and aliases add more than"), "{error}");

    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(8));
    assert!(parse(&long).unwrap_err().message.starts_with("anchors and aliases add more than"));
}

#[test]
fn depth_is_bounded_with_aliases_too() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let deepest = parse(&nested(YAML_DEPTH_MAX)).unwrap();
    let answer = json!({"data": {"resource": {"object": deepest}}}).to_string();
    assert!(serde_json::from_str::<Value>(&answer).is_ok(), "what is stored can be read again");
    check_refused(&nested(YAML_DEPTH_MAX + 1), "line 1, column 101: nested deeper than 100 levels");

    let half = YAML_DEPTH_MAX / 2;
    let chain = format!("a: &a {}\nb: {}*a{}\n", nested(half), "[".repeat(half), "]".repeat(half));
    check_refused(&chain, "line 2, column 54: nested deeper than 100 levels");
}

#[test]
fn length_is_bounded() {
    let text = format!("a: {}", "x".repeat(YAML_BYTES_MAX));
    check_refused(&text, "line 1, column 1: 3145731 bytes are more than the 3145728 allowed: split the file");
}

#[test]
fn tags() {
    check(
        "a: !!str 5\nb: !!int \"5\"\nc: ! 5\nd: !!map {}\ne: !!seq []\n",
        json!({"a": "5", "b": 5, "c": "5", "d": {}, "e": []}),
    );
    check_refused("a: !Ref b\n", "line 1, column 9: the tag `!Ref` is not supported: write plain YAML without it");
    check_refused("a: !!set {}\n", "line 1, column 10: the tag `!!set` is not supported: write plain YAML without it");
    check_refused(
        "a: !!binary aGk=\n",
        "line 1, column 13: the tag `!!binary` is not supported: write plain YAML without it",
    );
}

#[test]
fn numbers_without_a_json_value_are_refused() {
    check_refused(
        "a: 1\nb: .inf\n",
        "line 2, column 4: `.inf` has no value in JSON: use a finite number, or quote it if it is text",
    );
}

#[test]
fn documents_know_where_they_are() {
    let text = "# first\na: 1\n---\n\nb: 2\n---\n# none\n---\nc: 3\n...\n";
    let documents = parse_documents(text).unwrap();
    let shown: Vec<_> = documents.iter().map(|document| (document.line, document.value.to_string())).collect();
    assert_eq!(shown, [(2, "{\"a\":1}".into()), (5, "{\"b\":2}".into()), (9, "{\"c\":3}".into())]);
    for document in &documents {
        assert_eq!(parse(&text[document.range.clone()]).as_ref(), Ok(&document.value));
    }
    check_refused(text, "line 5, column 1: expected one document, found another after `---`");
}

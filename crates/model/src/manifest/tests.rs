//! Files in, objects or diagnostics out.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn check(path: &str, text: &str, expected: Expect) {
    let shown = match parse_file(path, text.as_bytes()) {
        Ok(documents) => documents.iter().map(show).collect::<String>(),
        Err(diagnostics) => diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect(),
    };
    expected.assert_eq(&shown);
}

fn show(document: &Document<'_>) -> String {
    let body = document.body.as_ref().map(|body| format!(" + {body:?}")).unwrap_or_default();
    format!("{}: {}{body}\n", document.line, document.object.clone().into_value())
}

#[test]
fn yaml_has_several_documents() {
    check(
        "a.yaml",
        "---\napiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n# none\n---\napiVersion: v1\nkind: B\nmetadata: {name: b}\n",
        expect![[r#"
            2: {"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}
            8: {"apiVersion":"v1","kind":"B","metadata":{"name":"b"}}
        "#]],
    );
    check("empty.yml", "# nothing yet\n", expect![""]);
}

#[test]
fn json_has_one() {
    check(
        "dir.d/a.JSON",
        "{\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"a\"}}",
        expect![[r#"
            1: {"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}
        "#]],
    );
    check("a.json", "{\"a\": 1,\n\"a\": 2}", expect!["a.json:2: duplicate key `a`\n"]);
    check("a.json", "{\"a\": 1}\n{}", expect!["a.json:2: trailing characters\n"]);
    check("a.json", "", expect!["a.json:1: EOF while parsing a value\n"]);
    check("a.json", &"[".repeat(200), expect!["a.json:1: recursion limit exceeded\n"]);
    let deep = format!("{}{}", "[".repeat(101), "]".repeat(101));
    check("a.json", &deep, expect!["a.json:1: nested deeper than 100 levels\n"]);
}

#[test]
fn markdown_has_front_matter_and_a_body() {
    check(
        "lamp.md",
        "---\napiVersion: c/v1\nkind: P\nmetadata:\n  name: lamp\n---\n\nA lamp.\n\nFor desks.\n\n",
        expect![[r#"
            2: {"apiVersion":"c/v1","kind":"P","metadata":{"name":"lamp"}} + "A lamp.\n\nFor desks."
        "#]],
    );
    check(
        "lamp.md",
        "---\r\napiVersion: c/v1\r\nkind: P\r\nmetadata: {name: lamp}\r\n---\r\n\r\n",
        expect![[r#"
            2: {"apiVersion":"c/v1","kind":"P","metadata":{"name":"lamp"}}
        "#]],
    );
}

#[test]
fn other_markdown_is_ignored() {
    check("README.md", "# Title\n---\nkind: P\n---\n", expect![""]);
    check("post.md", "---\ntitle: A post\n---\nText\n", expect![""]);
    check("rule.md", "---\nA line above and: below: this\n---\n", expect![""]);
    check("rule.md", "---\nnever closed\n", expect![""]);
    assert!(parse_file("x.md", b"\xff\xfe").unwrap().is_empty());
}

#[test]
fn other_files_are_ignored() {
    for path in ["Makefile", "a.yaml.tmpl", "image.png", ".yaml/README", "yaml", "dir.json/x"] {
        check(path, "{{ not ours", expect![""]);
    }
}

#[test]
fn what_is_not_an_object_is_refused() {
    check("a.yaml", "just text\n", expect!["a.yaml:1: not an object: expected apiVersion, kind, metadata and so on\n"]);
    check(
        "a.yaml",
        "---\n# c\nkind: A\n---\napiVersion: v1\n---\napiVersion: v1\nkind: A\n---\napiVersion: v1\nkind: A\nmetadata:\n  labels: {}\n  name: 1\n",
        expect![[r#"
            a.yaml:3: apiVersion: is required, a string: every document under this path defines an object
            a.yaml:5: kind: is required, a string: every document under this path defines an object
            a.yaml:7: metadata: is required, with the object's name
            a.yaml:14: metadata.name: is required, a string: quote it if it looks like a number or a boolean
        "#]],
    );
    check(
        "lamp.md",
        "---\nkind: P\n---\n",
        expect![[r#"
            lamp.md:2: apiVersion: is required, a string: every document under this path defines an object
        "#]],
    );
}

#[test]
fn a_file_has_so_many_diagnostics_at_most() {
    assert_eq!(parse_file("a.yaml", "---\na: 1\n".repeat(500).as_bytes()).unwrap_err().len(), 100);
}

#[test]
fn errors_of_syntax_have_a_line() {
    check("a.yaml", "a: 1\nb: 2\na: 3\n", expect!["a.yaml:3: duplicate key `a`\n"]);
    check("lamp.md", "---\nkind: P\nkind: P\n---\n", expect!["lamp.md:3: duplicate key `kind`\n"]);
    check("lamp.md", "---\nkind: P\n", expect!["lamp.md:1: front matter has no closing `---`\n"]);
    let refused = parse_file("a.yaml", b"a: 1\nb: \xff\n").unwrap_err();
    assert_eq!(refused[0].to_string(), "a.yaml:2: not UTF-8: save the file as UTF-8");
    let refused = parse_file("a.json", &vec![b' '; MANIFEST_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(refused[0].to_string(), "a.json: 3145729 bytes are more than the 3145728 allowed: split the file");
}

#[test]
fn fields_are_found_in_their_own_document() {
    let text = "# c\napiVersion: v1\nkind: A\nmetadata: {name: a}\nspec: {x: 1}\n---\napiVersion: v1\nkind: A\nmetadata:\n  name: b\nspec:\n  x: 1\n";
    let documents = parse_file("a.yaml", text.as_bytes()).unwrap();
    let lines: Vec<_> = documents.iter().map(|document| document.line_of("spec.x")).collect();
    assert_eq!(lines, [5, 12]);
}

#[test]
fn fields_are_found_in_front_matter_and_body() {
    let text = "---\napiVersion: v1\nkind: A\nmetadata: {name: a}\nspec:\n  x: 1\n---\n\nbody\n";
    let documents = parse_file("a.md", text.as_bytes()).unwrap();
    assert_eq!(documents[0].line_of("spec.x"), 6);
    assert_eq!(documents[0].line_of("spec.body"), 9);
    let error = crate::FieldError::invalid("spec.body", "too plain");
    assert_eq!(documents[0].diagnostic(&error).to_string(), "a.md:9: spec.body: too plain");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        path in prop::sample::select(vec!["a.yaml", "a.json", "a.md"]),
        pieces in prop::collection::vec(prop::sample::select(vec![
            "---\n", "apiVersion: v1\n", "kind: A\n", "metadata: {name: a}\n", "x", "\n", "{", "}", "\"a\": 1", ",", "\r\n", "é", "\t", "- ",
        ]), 0..12),
    ) {
        let text = pieces.concat();
        let lines = text.lines().count().max(1) + 1;
        match parse_file(path, text.as_bytes()) {
            Ok(documents) => for document in documents {
                prop_assert!(document.line <= lines && document.line_of("spec.a[0]") <= lines);
            },
            Err(diagnostics) => for diagnostic in diagnostics {
                prop_assert!(diagnostic.line.is_some_and(|line| line <= lines), "{} of {}", diagnostic, text);
            },
        }
    }
}

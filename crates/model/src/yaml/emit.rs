//! The canonical text of a value.
//!
//! Two spaces of indentation, lists at the column of their key, keys sorted
//! but for those that a reader looks for first, strings quoted only where a
//! reader could mistake them, texts of several lines as literal blocks.

use serde_json::{Map, Number, Value};

use super::quote::{fits_literal, inline, literal_header};

/// The keys that come first, in this order, in the root of an object.
const ROOT_FIRST: &[&str] = &["apiVersion", "kind", "metadata"];
/// The same in its `metadata`.
const METADATA_FIRST: &[&str] = &["name", "namespace", "labels", "annotations"];
/// YAML allows a key of 1,024 characters before its colon; longer ones need
/// the explicit form.
const SIMPLE_KEY_CHARS_MAX: usize = 1000;

/// Ends with a line break; the same value always gives the same bytes.
pub fn emit(value: &Value) -> String {
    let mut emitter = Emitter { out: String::new() };
    match value {
        Value::Object(fields) if !fields.is_empty() => emitter.root(fields),
        Value::Array(items) if !items.is_empty() => emitter.list(items, 0),
        // A literal block needs a parent to be indented under.
        Value::String(text) => emitter.line(&inline(text)),
        other => emitter.scalar(other, 0),
    }
    emitter.out
}

/// Every scalar of `value` in the order of its canonical text, with the keys
/// that lead to it. Places in lists have no key.
pub fn for_each_scalar<'v>(value: &'v Value, visit: &mut dyn FnMut(&[&'v str], &'v Value)) {
    walk(value, &mut Vec::new(), visit);
}

fn walk<'v>(value: &'v Value, path: &mut Vec<&'v str>, visit: &mut dyn FnMut(&[&'v str], &'v Value)) {
    match value {
        Value::Object(fields) => {
            let first = match path.as_slice() {
                [] => ROOT_FIRST,
                ["metadata"] => METADATA_FIRST,
                _ => &[],
            };
            for (key, value) in ordered(fields, first) {
                path.push(key);
                walk(value, path, visit);
                path.pop();
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, path, visit)),
        scalar => visit(path, scalar),
    }
}

struct Emitter {
    out: String,
}

impl Emitter {
    fn root(&mut self, fields: &Map<String, Value>) {
        for (at, (key, value)) in ordered(fields, ROOT_FIRST).into_iter().enumerate() {
            let first = if key == "metadata" { METADATA_FIRST } else { &[] };
            self.field(key, value, 0, at > 0, first);
        }
    }

    /// The cursor stands where the first key goes.
    fn map(&mut self, fields: &Map<String, Value>, indent: usize, first: &[&str]) {
        for (at, (key, value)) in ordered(fields, first).into_iter().enumerate() {
            self.field(key, value, indent, at > 0, &[]);
        }
    }

    fn field(&mut self, key: &str, value: &Value, indent: usize, on_new_line: bool, first: &[&str]) {
        if on_new_line {
            self.indent(indent);
        }
        let key = inline(key);
        if key.chars().count() > SIMPLE_KEY_CHARS_MAX {
            self.out.push_str("? ");
            self.line(&key);
            self.indent(indent);
        } else {
            self.out.push_str(&key);
        }
        self.out.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                self.out.push('\n');
                self.indent(indent + 2);
                self.map(fields, indent + 2, first);
            }
            Value::Array(items) if !items.is_empty() => {
                self.out.push('\n');
                self.indent(indent);
                self.list(items, indent);
            }
            scalar => {
                self.out.push(' ');
                self.scalar(scalar, indent);
            }
        }
    }

    /// The cursor stands where the first dash goes.
    fn list(&mut self, items: &[Value], indent: usize) {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.indent(indent);
            }
            self.out.push_str("- ");
            match item {
                Value::Object(fields) if !fields.is_empty() => self.map(fields, indent + 2, &[]),
                Value::Array(items) if !items.is_empty() => self.list(items, indent + 2),
                scalar => self.scalar(scalar, indent),
            }
        }
    }

    /// The rest of the line, and the lines of a literal block below it.
    fn scalar(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) if fits_literal(text) => self.literal(text, indent + 2),
            Value::String(text) => self.line(&inline(text)),
            Value::Number(number) => self.line(&number_text(number)),
            Value::Bool(value) => self.line(if *value { "true" } else { "false" }),
            Value::Null => self.line("null"),
            Value::Array(_) => self.line("[]"),
            Value::Object(_) => self.line("{}"),
        }
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.line(&literal_header(text));
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            if !line.is_empty() {
                self.indent(indent);
            }
            self.line(line);
        }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn indent(&mut self, columns: usize) {
        self.out.extend(std::iter::repeat_n(' ', columns));
    }
}

/// Those of `first` in that order, then the others by name.
fn ordered<'v>(fields: &'v Map<String, Value>, first: &[&str]) -> Vec<(&'v String, &'v Value)> {
    let rank = |key: &str| first.iter().position(|name| *name == key).unwrap_or(first.len());
    let mut ordered: Vec<_> = fields.iter().collect();
    ordered.sort_by(|(a, _), (b, _)| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
    ordered
}

/// A float has a point and its exponent a sign: readers of YAML 1.1 want both.
fn number_text(number: &Number) -> String {
    let text = number.to_string();
    let Some((mantissa, exponent)) = text.split_once('e').filter(|_| number.is_f64()) else { return text };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn check(value: Value, expected: Expect) {
        let text = emit(&value);
        expected.assert_eq(&text);
        assert_eq!(crate::yaml::parse(&text), Ok(value));
    }

    #[test]
    fn keys_that_are_looked_for_come_first() {
        check(
            json!({"spec": {"metadata": {"name": 1, "a": 2}}, "kind": "A", "data": {}, "apiVersion": "v1",
                   "metadata": {"annotations": {"b": "1", "a": "2"}, "uid": "u", "finalizers": ["f"], "labels": {"x": "y"}, "namespace": "b", "name": "a"}}),
            expect![[r#"
                apiVersion: v1
                kind: A
                metadata:
                  name: a
                  namespace: b
                  labels:
                    x: "y"
                  annotations:
                    a: "2"
                    b: "1"
                  finalizers:
                  - f
                  uid: u
                data: {}
                spec:
                  metadata:
                    a: 2
                    name: 1
            "#]],
        );
    }

    #[test]
    fn scalars_come_in_the_order_of_the_text() {
        let value =
            json!({"data": {"b": "4", "a": ["2", {"x": "3"}]}, "kind": "1", "metadata": {"a": "m2", "name": "m1"}});
        let mut found = Vec::new();
        for_each_scalar(&value, &mut |path, value| {
            found.push(format!("{}={}", path.join(":"), value.as_str().unwrap()))
        });
        assert_eq!(found, ["kind=1", "metadata:name=m1", "metadata:a=m2", "data:a=2", "data:a:x=3", "data:b=4"]);
    }

    #[test]
    fn lists_stand_under_their_key() {
        check(
            json!({"a": [1, [2, [3], []], {"b": [4], "c": {"d": null}}, "x\ny"]}),
            expect![[r#"
                a:
                - 1
                - - 2
                  - - 3
                  - []
                - b:
                  - 4
                  c:
                    d: null
                - |-
                  x
                  y
            "#]],
        );
    }

    #[test]
    fn texts_of_several_lines() {
        check(
            json!({"a": "one\ntwo\n", "b": "one\n\n  two", "c": "one\n\n\n", "d": "  one\ntwo\n", "e": "\none\n", "f": "\ttab\nx", "g": "one \ntwo\n"}),
            expect![[r#"
                a: |
                  one
                  two
                b: |-
                  one

                    two
                c: |+
                  one


                d: |2
                    one
                  two
                e: |2

                  one
                f: |2-
                  	tab
                  x
                g: |
                  one 
                  two
            "#]],
        );
        check(
            json!({"a": "\n", "b": "a\n \nb", "c": "a\r\nb", "d": "a\n\u{7f}"}),
            expect![[r#"
                a: "\n"
                b: "a\n \nb"
                c: "a\r\nb"
                d: "a\n\x7F"
            "#]],
        );
    }

    #[test]
    fn numbers() {
        check(
            json!([0, -1, u64::MAX, i64::MIN, 1.0, 0.1, 1e300, 1.5e-7, -0.0]),
            expect![[r#"
                - 0
                - -1
                - 18446744073709551615
                - -9223372036854775808
                - 1.0
                - 0.1
                - 1.0e+300
                - 1.5e-7
                - -0.0
            "#]],
        );
    }

    #[test]
    fn long_keys_are_explicit() {
        let key = "k".repeat(1500);
        let value = json!({key.as_str(): {key.as_str(): [1]}, "z": [{key.as_str(): "a\nb"}]});
        let text = emit(&value);
        assert!(text.starts_with(&format!("? {key}\n:\n  ? {key}\n  :\n  - 1\n")), "{text}");
        assert_eq!(crate::yaml::parse(&text), Ok(value));
    }

    #[test]
    fn roots_that_are_no_objects() {
        check(json!("a\nb"), expect!["\"a\\nb\"\n"]);
        check(json!({}), expect!["{}\n"]);
        check(json!([]), expect!["[]\n"]);
        check(json!([["a"]]), expect!["- - a\n"]);
        check(json!(true), expect!["true\n"]);
    }
}

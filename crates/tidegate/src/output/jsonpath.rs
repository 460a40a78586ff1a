//! The part of JSONPath that printer columns use.
//!
//! `.spec.x[0].y`, `.spec['a.b']`, `.items[*].name`, `.metadata.labels.a\.b`,
//! `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;

/// A column's path has a few steps; more are a mistake.
const STEPS_MAX: usize = 64;

#[derive(Clone, PartialEq, Debug)]
pub struct JsonPath(Vec<Step>);

#[derive(Clone, PartialEq, Debug)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// Elements whose field, one or more steps down, has this text.
    Where(Vec<String>, String),
}

impl JsonPath {
    /// `None` for what is beyond this subset: such a column stays empty.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner.strip_suffix('}')?;
        }
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() && steps.len() < STEPS_MAX {
            let (step, after) = match rest.strip_prefix('[') {
                Some(inner) => bracket(inner)?,
                None => dotted(rest.strip_prefix('.').or_else(|| steps.is_empty().then_some(rest))?)?,
            };
            steps.push(step);
            rest = after;
        }
        (rest.is_empty() && !steps.is_empty()).then_some(Self(steps))
    }

    /// Everything that the path leads to.
    pub fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        self.0.iter().fold(vec![value], |found, step| found.into_iter().flat_map(|value| step.apply(value)).collect())
    }
}

impl Step {
    fn apply<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Self::Field(name), Value::Object(members)) => members.get(name).into_iter().collect(),
            (Self::Index(at), Value::Array(items)) => index(items, *at).into_iter().collect(),
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(members)) => members.values().collect(),
            (Self::Where(path, text), Value::Array(items)) => {
                items.iter().filter(|item| has(item, path, text)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Negative ones count from the end.
fn index(items: &[Value], at: i64) -> Option<&Value> {
    let at = if at < 0 { i64::try_from(items.len()).ok()? + at } else { at };
    items.get(usize::try_from(at).ok()?)
}

fn has(item: &Value, path: &[String], text: &str) -> bool {
    let found = path.iter().try_fold(item, |value, name| value.get(name));
    match found {
        Some(Value::String(found)) => found == text,
        Some(Value::Bool(found)) => text == if *found { "true" } else { "false" },
        Some(Value::Number(found)) => found.to_string().as_str() == text,
        _ => false,
    }
}

/// `name…`, with `\.` for a dot in the name.
fn dotted(text: &str) -> Option<(Step, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    let mut end = text.len();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            _ => name.push(letter),
        }
    }
    let step = match &*name {
        "" => return None,
        "*" => Step::All,
        _ => Step::Field(name),
    };
    Some((step, &text[end..]))
}

/// What stands between brackets.
fn bracket(text: &str) -> Option<(Step, &str)> {
    if let Some(filter) = text.strip_prefix("?(") {
        let (condition, after) = filter.split_once(")]")?;
        return Some((condition_step(condition)?, after));
    }
    for quote in ['\'', '"'] {
        if let Some(inner) = text.strip_prefix(quote) {
            let (name, after) = inner.split_once(quote)?;
            return Some((Step::Field(name.to_owned()), after.strip_prefix(']')?));
        }
    }
    let (inside, after) = text.split_once(']')?;
    let step = if inside == "*" { Step::All } else { Step::Index(inside.parse().ok()?) };
    Some((step, after))
}

/// `@.type=="Ready"`.
fn condition_step(text: &str) -> Option<Step> {
    let (path, value) = text.split_once("==")?;
    let path = path.trim().strip_prefix("@.")?;
    let names = path.split('.').map(ToOwned::to_owned).collect();
    let value = value.trim();
    let unquoted = ['\'', '"'].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Some(Step::Where(names, unquoted.unwrap_or(value).to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(path: &str, expected: Option<Value>) {
        let value = json!({
            "metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "lamp"}},
            "spec": {"count": 3, "a.b": "dotted", "options": [{"name": "color", "values": ["black", "white"]}, {"name": "size"}]},
            "status": {"conditions": [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True", "code": 7}]},
        });
        let found = JsonPath::parse(path).map(|path| path.find(&value).into_iter().cloned().collect::<Value>());
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn paths_that_columns_use() {
        check(".metadata.name", Some(json!(["a"])));
        check("metadata.name", Some(json!(["a"])));
        check("{.metadata.name}", Some(json!(["a"])));
        check("$.spec.count", Some(json!([3])));
        check(".spec.options[0].name", Some(json!(["color"])));
        check(".spec.options[-1].name", Some(json!(["size"])));
        check(".spec.options[*].name", Some(json!(["color", "size"])));
        check(".spec.options[0].values", Some(json!([["black", "white"]])));
        check(".spec['a.b']", Some(json!(["dotted"])));
        check(r".metadata.labels.app\.kubernetes\.io/name", Some(json!(["lamp"])));
        check(r#".status.conditions[?(@.type=="Ready")].status"#, Some(json!(["True"])));
        check(r#".status.conditions[?(@.type == 'Ready')].status"#, Some(json!(["True"])));
        check(r#".status.conditions[?(@.code==7)].type"#, Some(json!(["Ready"])));
    }

    #[test]
    fn what_is_not_there_is_nothing() {
        for path in [
            ".spec.nothing",
            ".spec.options[9]",
            ".spec.options[-9]",
            ".spec.count.x",
            ".spec.count[0]",
            ".metadata[*].x",
        ] {
            check(path, Some(json!([])));
        }
    }

    #[test]
    fn what_is_beyond_the_subset_is_refused() {
        for path in
            ["", ".", "..name", ".a[", ".a[x]", ".a[1:2]", ".a['b", "{.a", ".a]b[", r".a\", ".a[?(@.b>1)]", ".a[0]b"]
        {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
        assert_eq!(JsonPath::parse(&".a".repeat(STEPS_MAX + 1)), None);
    }
}

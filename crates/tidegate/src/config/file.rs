//! The configuration file: YAML, flattened to keys and texts.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use tidegate_files::FileKind;
use tidegate_model::yaml;

/// It has a few dozen keys; a larger file is not one.
const CONFIGURATION: FileKind = FileKind { what: "the configuration", bytes_max: 1 << 20 };

/// A key's path, the text of its value, and where it stands.
pub struct Entry {
    pub path: String,
    pub text: String,
    pub line: Option<usize>,
}

pub fn read(path: &Path) -> Result<Vec<Entry>> {
    let text = CONFIGURATION.read_text(path)?;
    entries(&text).map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))
}

/// An empty file sets nothing.
pub fn entries(text: &str) -> Result<Vec<Entry>, String> {
    let value = if is_blank(text) { Value::Null } else { yaml::parse(text).map_err(|error| error.to_string())? };
    let mut found = Vec::new();
    match value {
        Value::Null => {}
        Value::Object(_) => flatten("", &value, &mut found)?,
        _ => return Err("it is not a map of keys: write `listen: 127.0.0.1:7300`".into()),
    }
    let located = |(path, text_of): (String, String)| Entry { line: yaml::line_of(text, &path), path, text: text_of };
    Ok(found.into_iter().map(located).collect())
}

fn is_blank(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

fn flatten(path: &str, value: &Value, found: &mut Vec<(String, String)>) -> Result<(), String> {
    let text = match value {
        Value::Object(members) => {
            return members.iter().try_for_each(|(name, value)| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(&path, value, found)
            });
        }
        Value::Array(_) => return Err(format!("{path}: a list is not expected here: write one value")),
        Value::Null => return Err(format!("{path}: it has no value: remove the key to keep its default")),
        Value::String(text) => text.clone(),
        scalar => scalar.to_string(),
    };
    found.push((path.to_owned(), text));
    Ok(())
}

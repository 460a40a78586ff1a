//! Field selectors: `metadata.name` and `metadata.namespace`, no others.
//!
//! Both are part of the object's key, so a selector is decided without reading
//! the object.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::parse::{Parser, Token};
use super::{SELECTOR_REQUIREMENTS_MAX, SelectorError};

/// Requirements that must all hold; none of them selects everything.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct FieldSelector {
    /// Sorted, without repetitions.
    requirements: Arc<[FieldRequirement]>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FieldRequirement {
    Is(SelectableField, Box<str>),
    IsNot(SelectableField, Box<str>),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SelectableField {
    Name,
    /// The empty text at cluster scope.
    Namespace,
}

impl SelectableField {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "metadata.name",
            Self::Namespace => "metadata.namespace",
        }
    }
}

impl FieldSelector {
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    pub fn matches(&self, namespace: Option<&str>, name: &str) -> bool {
        let value = |field| match field {
            SelectableField::Name => name,
            SelectableField::Namespace => namespace.unwrap_or_default(),
        };
        self.requirements.iter().all(|requirement| match requirement {
            FieldRequirement::Is(field, expected) => value(*field) == &**expected,
            FieldRequirement::IsNot(field, expected) => value(*field) != &**expected,
        })
    }

    /// The one value that `field` must have, if any: it narrows a list to a
    /// key or to a namespace.
    pub fn exact(&self, field: SelectableField) -> Option<&str> {
        self.requirements.iter().find_map(|requirement| match requirement {
            FieldRequirement::Is(of, value) if *of == field => Some(&**value),
            _ => None,
        })
    }
}

impl FromStr for FieldSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser::new(text)?;
        let mut requirements = Vec::new();
        if parser.peek() == Token::End {
            return Ok(Self::default());
        }
        loop {
            if requirements.len() == SELECTOR_REQUIREMENTS_MAX {
                return Err(parser.error(format!("more than {SELECTOR_REQUIREMENTS_MAX} requirements")));
            }
            requirements.push(requirement(&mut parser)?);
            match parser.next() {
                Token::End => break,
                Token::Comma => {}
                other => return Err(parser.error(format!("expected ',' or the end, found {}", other.describe()))),
            }
        }
        requirements.sort();
        requirements.dedup();
        Ok(Self { requirements: requirements.into() })
    }
}

fn requirement(parser: &mut Parser<'_>) -> Result<FieldRequirement, SelectorError> {
    let field = match parser.next() {
        Token::Word("metadata.name") => SelectableField::Name,
        Token::Word("metadata.namespace") => SelectableField::Namespace,
        other => {
            let message = format!("{} is not selectable: use metadata.name or metadata.namespace", other.describe());
            return Err(parser.error(message));
        }
    };
    let operator = parser.next();
    if !matches!(operator, Token::Equal | Token::NotEqual) {
        return Err(parser.error(format!("expected '=', '==' or '!=', found {}", operator.describe())));
    }
    let value: Box<str> = match parser.peek() {
        Token::Word(word) => {
            parser.next();
            word.into()
        }
        _ => "".into(),
    };
    Ok(if operator == Token::Equal {
        FieldRequirement::Is(field, value)
    } else {
        FieldRequirement::IsNot(field, value)
    })
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match requirement {
                FieldRequirement::Is(field, value) => write!(f, "{comma}{}={value}", field.as_str())?,
                FieldRequirement::IsNot(field, value) => write!(f, "{comma}{}!={value}", field.as_str())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<FieldSelector>() {
            Ok(selector) => selector.to_string(),
            Err(error) => format!("! {error}"),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn reads_both_fields_and_three_operators() {
        check("", "");
        check("metadata.name==a", "metadata.name=a");
        check("metadata.namespace!=x, metadata.name = a", "metadata.name=a,metadata.namespace!=x");
        check("metadata.namespace=", "metadata.namespace=");
    }

    #[test]
    fn errors_name_what_is_supported() {
        check(
            "spec.title=x",
            "! selector, character 1: `spec.title` is not selectable: use metadata.name or metadata.namespace",
        );
        check("metadata.name", "! selector, character 14: expected '=', '==' or '!=', found the end");
        check("metadata.name in (a)", "! selector, character 15: expected '=', '==' or '!=', found `in`");
        check(
            "metadata.name=a,",
            "! selector, character 17: the end is not selectable: use metadata.name or metadata.namespace",
        );
    }

    #[test]
    fn matches_by_key_alone() {
        for (text, namespace, name, expected) in [
            ("", None, "a", true),
            ("metadata.name=a", Some("x"), "a", true),
            ("metadata.name!=a", Some("x"), "a", false),
            ("metadata.namespace=x,metadata.name=a", Some("y"), "a", false),
            ("metadata.namespace=", None, "a", true),
            ("metadata.name=a,metadata.name=b", None, "a", false),
        ] {
            let selector: FieldSelector = text.parse().unwrap();
            assert_eq!(selector.matches(namespace, name), expected, "{text}");
        }
    }
}

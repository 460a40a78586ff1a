//! The text form of a label selector: `a=b,c!=d,e in (x,y),f notin (z),g,!h`.
//!
//! The grammar is that of Kubernetes: `in` and `notin` are operators only
//! where an operator may stand, an absent value is the empty one.

use std::str::FromStr;

use super::{
    LabelSelector, Operator, Requirement, SELECTOR_BYTES_MAX, SELECTOR_REQUIREMENTS_MAX, SELECTOR_VALUES_MAX,
    SelectorError, value_set,
};
use crate::syntax::{check_label_key, check_label_value};

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser::new(text)?;
        let mut requirements = Vec::new();
        if parser.peek() == Token::End {
            return Ok(Self::everything());
        }
        loop {
            if requirements.len() == SELECTOR_REQUIREMENTS_MAX {
                return Err(parser.error(format!("more than {SELECTOR_REQUIREMENTS_MAX} requirements")));
            }
            requirements.push(parser.requirement()?);
            match parser.next() {
                Token::End => return Ok(Self::new(requirements)),
                Token::Comma => {}
                other => return Err(parser.error(format!("expected ',' or the end, found {}", other.describe()))),
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Comma,
    Open,
    Close,
    Not,
    Equal,
    NotEqual,
    Greater,
    Less,
    End,
}

impl Token<'_> {
    pub(super) fn describe(self) -> String {
        match self {
            Token::Word(word) => format!("`{}`", word.chars().take(64).collect::<String>()),
            Token::Comma => "','".into(),
            Token::Open => "'('".into(),
            Token::Close => "')'".into(),
            Token::Not => "'!'".into(),
            Token::Equal => "'='".into(),
            Token::NotEqual => "'!='".into(),
            Token::Greater => "'>'".into(),
            Token::Less => "'<'".into(),
            Token::End => "the end".into(),
        }
    }
}

pub(super) struct Parser<'a> {
    text: &'a str,
    /// Byte offset of what is not read yet.
    at: usize,
    /// Byte offset of the token read last, for errors.
    token_at: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, SelectorError> {
        if text.len() > SELECTOR_BYTES_MAX {
            let message = format!("{} bytes are more than the {SELECTOR_BYTES_MAX} allowed", text.len());
            return Err(SelectorError { position: 1, message });
        }
        Ok(Self { text, at: 0, token_at: 0 })
    }

    pub(super) fn error(&self, message: impl Into<String>) -> SelectorError {
        SelectorError { position: self.text[..self.token_at].chars().count() + 1, message: message.into() }
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\r', '\n']);
        self.token_at = self.text.len() - rest.len();
        let (token, length) = scan(rest);
        self.at = self.token_at + length;
        token
    }

    pub(super) fn peek(&mut self) -> Token<'a> {
        let (at, token_at) = (self.at, self.token_at);
        let token = self.next();
        (self.at, self.token_at) = (at, token_at);
        token
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.peek() == Token::Not {
            self.next();
            let key = self.key()?;
            return Ok(Requirement::new(key, Operator::Absent));
        }
        let key = self.key()?;
        let operator = self.operator()?;
        Ok(Requirement::new(key, operator))
    }

    fn key(&mut self) -> Result<&'a str, SelectorError> {
        match self.next() {
            Token::Word(key) => match check_label_key(key) {
                Ok(()) => Ok(key),
                Err(expected) => Err(self.error(format!("`{key}` is not a label key: expected {expected}"))),
            },
            other => Err(self.error(format!("expected a label key or '!', found {}", other.describe()))),
        }
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        if matches!(self.peek(), Token::Comma | Token::End) {
            return Ok(Operator::Exists);
        }
        match self.next() {
            Token::Equal => Ok(Operator::In([self.value()?].into())),
            Token::NotEqual => Ok(Operator::NotIn([self.value()?].into())),
            Token::Greater => Ok(Operator::GreaterThan(self.number()?)),
            Token::Less => Ok(Operator::LessThan(self.number()?)),
            Token::Word("in") => Ok(Operator::In(self.value_list()?)),
            Token::Word("notin") => Ok(Operator::NotIn(self.value_list()?)),
            other => {
                let expected = "expected '=', '!=', 'in', 'notin', '>', '<' or ','";
                Err(self.error(format!("{expected}, found {}", other.describe())))
            }
        }
    }

    fn value(&mut self) -> Result<Box<str>, SelectorError> {
        if matches!(self.peek(), Token::Comma | Token::End | Token::Close) {
            return Ok("".into());
        }
        match self.next() {
            Token::Word(value) => match check_label_value(value) {
                Ok(()) => Ok(value.into()),
                Err(expected) => Err(self.error(format!("`{value}` is not a label value: expected {expected}"))),
            },
            other => Err(self.error(format!("expected a value, found {}", other.describe()))),
        }
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let token = self.next();
        let number = if let Token::Word(word) = token { word.parse().ok() } else { None };
        number.ok_or_else(|| self.error(format!("expected an integer, found {}", token.describe())))
    }

    fn value_list(&mut self) -> Result<Box<[Box<str>]>, SelectorError> {
        match self.next() {
            Token::Open => {}
            other => return Err(self.error(format!("expected '(', found {}", other.describe()))),
        }
        if self.peek() == Token::Close {
            self.next();
            return Err(self.error("expected at least one value before ')'"));
        }
        let mut values = Vec::new();
        loop {
            if values.len() == SELECTOR_VALUES_MAX {
                return Err(self.error(format!("more than {SELECTOR_VALUES_MAX} values")));
            }
            values.push(self.value()?);
            match self.next() {
                Token::Close => return Ok(value_set(values)),
                Token::Comma => {}
                other => return Err(self.error(format!("expected ',' or ')', found {}", other.describe()))),
            }
        }
    }
}

/// The first token of `rest`, which starts with no space, and its length.
fn scan(rest: &str) -> (Token<'_>, usize) {
    let is_symbol = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let mut chars = rest.chars();
    match (chars.next(), chars.next()) {
        (None, _) => (Token::End, 0),
        (Some('='), Some('=')) => (Token::Equal, 2),
        (Some('='), _) => (Token::Equal, 1),
        (Some('!'), Some('=')) => (Token::NotEqual, 2),
        (Some('!'), _) => (Token::Not, 1),
        (Some('('), _) => (Token::Open, 1),
        (Some(')'), _) => (Token::Close, 1),
        (Some(','), _) => (Token::Comma, 1),
        (Some('>'), _) => (Token::Greater, 1),
        (Some('<'), _) => (Token::Less, 1),
        _ => {
            let end = rest.find(|c: char| is_symbol(c) || matches!(c, ' ' | '\t' | '\r' | '\n'));
            let length = end.unwrap_or(rest.len());
            (Token::Word(&rest[..length]), length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<LabelSelector>() {
            Ok(selector) => selector.to_string(),
            Err(error) => format!("! {error}"),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn reads_every_operator_and_writes_it_canonically() {
        check("", "");
        check(" \t", "");
        check("a=b", "a=b");
        check("a == b", "a=b");
        check("a in (b)", "a=b");
        check("a notin ( b )", "a!=b");
        check("g,!h,c!=d,a=b", "a=b,c!=d,g,!h");
        check("e in (y, x,y)", "e in (x,y)");
        check("f notin (z,a)", "f notin (a,z)");
        check("a=b,a=b", "a=b");
        check("app.kubernetes.io/name=x.y_Z-1", "app.kubernetes.io/name=x.y_Z-1");
        check("n>5,n<+09", "n>5,n<9");
    }

    #[test]
    fn an_absent_value_is_the_empty_one() {
        check("a=", "a=");
        check("a=,b", "a=,b");
        check("a!=", "a!=");
        check("a in (,x)", "a in (,x)");
        check("a in (x,)", "a in (,x)");
    }

    #[test]
    fn operators_are_words_elsewhere() {
        check("in=notin", "in=notin");
        check("in in (in,notin)", "in in (in,notin)");
        check("notin", "notin");
        check("!in", "!in");
    }

    #[test]
    fn errors_name_the_position() {
        check("a=b,", "! selector, character 5: expected a label key or '!', found the end");
        check("a b", "! selector, character 3: expected '=', '!=', 'in', 'notin', '>', '<' or ',', found `b`");
        check("a=b c", "! selector, character 5: expected ',' or the end, found `c`");
        check("a in x", "! selector, character 6: expected '(', found `x`");
        check("a in ()", "! selector, character 7: expected at least one value before ')'");
        check("a in (x", "! selector, character 8: expected ',' or ')', found the end");
        check("a>x", "! selector, character 3: expected an integer, found `x`");
        check("!a=b", "! selector, character 3: expected ',' or the end, found '='");
        check(
            "ä==(",
            "! selector, character 1: `ä` is not a label key: expected an optional DNS prefix and '/', then 1 to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit",
        );
        check(
            "a=b/c",
            "! selector, character 3: `b/c` is not a label value: expected at most 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit, or nothing",
        );
    }

    #[test]
    fn limits() {
        let many = |item: &str, count: usize| vec![item; count].join(",");
        check(
            &"a".repeat(SELECTOR_BYTES_MAX + 1),
            "! selector, character 1: 8193 bytes are more than the 8192 allowed",
        );
        assert!(many("a", SELECTOR_REQUIREMENTS_MAX).parse::<LabelSelector>().is_ok());
        check(&many("a", SELECTOR_REQUIREMENTS_MAX + 1), "! selector, character 128: more than 64 requirements");
        let list = format!("a in ({})", many("x", SELECTOR_VALUES_MAX + 1));
        check(&list, "! selector, character 518: more than 256 values");
    }
}

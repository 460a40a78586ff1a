//! Where the token comes from.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::config::DATA_DIR;

/// No token is longer; a larger file is not one.
const TOKEN_BYTES_MAX: usize = 16 << 10;

pub enum TokenSource {
    /// Read at each connection, so that a watch survives a token's rotation.
    File(PathBuf),
    Text(String),
}

impl TokenSource {
    /// A file that was named, a variable, or the token of a server that was
    /// started in this directory.
    pub fn find(file: Option<&Path>, variable: Option<String>) -> Result<Self> {
        if let Some(path) = file {
            return Ok(Self::File(path.into()));
        }
        if let Some(token) = variable.filter(|token| !token.is_empty()) {
            return Ok(Self::Text(token));
        }
        let local = Path::new(DATA_DIR).join("admin.token");
        if !local.exists() {
            bail!(
                "no token: name its file with --token-file, set TIDEGATE_TOKEN, or run this where {} is",
                local.display()
            );
        }
        Ok(Self::File(local))
    }

    pub fn read(&self) -> Result<String> {
        let (text, place) = match self {
            Self::Text(text) => (text.clone(), "TIDEGATE_TOKEN".to_owned()),
            Self::File(path) => {
                let reading = || format!("failed to read the token file {}", path.display());
                (fs::read_to_string(path).with_context(reading)?, path.display().to_string())
            }
        };
        check(text.trim()).map(ToOwned::to_owned).with_context(|| format!("{place} does not hold a token"))
    }
}

/// Only what a header may carry.
fn check(token: &str) -> Result<&str> {
    if token.is_empty() {
        bail!("it is empty");
    }
    if token.len() > TOKEN_BYTES_MAX || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("it has more than one word, or more than {TOKEN_BYTES_MAX} bytes");
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word() {
        for (text, expected) in [
            ("tga_abc\n", Some("tga_abc")),
            ("  a.b-c_d ", Some("a.b-c_d")),
            ("", None),
            ("\n", None),
            ("two words", None),
            ("line\nline", None),
            ("ü", None),
        ] {
            assert_eq!(TokenSource::Text(text.into()).read().ok().as_deref(), expected, "{text:?}");
        }
        assert!(TokenSource::Text("x".repeat(TOKEN_BYTES_MAX + 1)).read().is_err());
    }

    #[test]
    fn a_refusal_does_not_repeat_the_token() {
        let error = TokenSource::Text("secret word".into()).read().unwrap_err();
        assert!(!format!("{error:#}").contains("secret"), "{error:#}");
    }

    #[test]
    fn the_file_is_read_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, "one\n").unwrap();
        let source = TokenSource::find(Some(&path), Some("variable".into())).unwrap();
        assert_eq!(source.read().unwrap(), "one");
        fs::write(&path, "two\n").unwrap();
        assert_eq!(source.read().unwrap(), "two");
    }
}

//! Where the token comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use tidegate_files::{FileError, FileKind, Unread};

/// No token is longer; a larger file is not one.
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// With room for what surrounds a token: a line end, say.
const TOKEN_FILE: FileKind = FileKind { what: "the token file", bytes_max: 2 * TOKEN_BYTES_MAX as u64 };

#[derive(Clone)]
pub enum TokenSource {
    /// Read for each request, so that a rotated token takes effect by itself.
    File(PathBuf),
    Text(String),
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{0}, or write a token there with `tidegate token create … -o FILE`")]
    Unreadable(FileError),
    #[error("the token file {} is empty: write a token there with `tidegate token create … -o FILE`", path.display())]
    Empty { path: PathBuf },
    #[error("the token file {} does not hold a token, which is one word of {TOKEN_BYTES_MAX} bytes at most", path.display())]
    FileIsNotAToken { path: PathBuf },
    #[error("this is not a token, which is one word of {TOKEN_BYTES_MAX} bytes at most")]
    NotAToken,
}

impl TokenSource {
    pub fn read(&self) -> Result<String, TokenError> {
        match self {
            Self::Text(text) => is_token(text.trim()).then(|| text.trim().to_owned()).ok_or(TokenError::NotAToken),
            Self::File(path) => match TOKEN_FILE.read_text(path) {
                Ok(text) => token_of(text.trim(), path),
                Err(FileError { reason: Unread::TooLarge { .. } | Unread::NotText, path, .. }) => {
                    Err(TokenError::FileIsNotAToken { path })
                }
                Err(error) => Err(TokenError::Unreadable(error)),
            },
        }
    }
}

fn token_of(text: &str, path: &Path) -> Result<String, TokenError> {
    match text {
        "" => Err(TokenError::Empty { path: path.to_owned() }),
        token if is_token(token) => Ok(token.to_owned()),
        _ => Err(TokenError::FileIsNotAToken { path: path.to_owned() }),
    }
}

/// Only what a header may carry.
fn is_token(token: &str) -> bool {
    !token.is_empty() && token.len() <= TOKEN_BYTES_MAX && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Where it is, never what it is.
impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Text(_) => f.write_str("Text(…)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
    fn a_file_without_an_end_is_not_a_token() {
        let directory = tempfile::tempdir().unwrap();
        let odd = directory.path().join("odd");
        fs::write(&odd, b"\xff\xfe").unwrap();
        for path in ["/dev/zero".into(), odd] {
            let read = TokenSource::File(path).read();
            assert!(matches!(read, Err(TokenError::FileIsNotAToken { .. })), "{read:?}");
        }
    }

    #[test]
    fn the_file_is_read_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, "one\n").unwrap();
        let source = TokenSource::File(path.clone());
        assert_eq!(source.read().unwrap(), "one");
        fs::write(&path, "two\n").unwrap();
        assert_eq!(source.read().unwrap(), "two");
        fs::write(&path, " \n").unwrap();
        assert!(matches!(source.read(), Err(TokenError::Empty { .. })));
        fs::remove_file(&path).unwrap();
        assert!(source.read().unwrap_err().to_string().contains("token create"));
    }
}

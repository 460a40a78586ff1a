//! What is wrong with an object, and where: data, not a failure of ours.

use std::fmt;

/// The reasons of Kubernetes' `field.Error`, by the same names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FieldErrorReason {
    Required,
    Invalid,
    NotSupported,
    Duplicate,
    TooLong,
    TooMany,
    TypeInvalid,
    Forbidden,
    NotFound,
}

impl FieldErrorReason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldError {
    /// As Kubernetes writes it: `spec.options[0].name`, `metadata.labels[app]`;
    /// empty for the object itself.
    pub path: String,
    pub reason: FieldErrorReason,
    /// What is wrong and what to do.
    pub message: String,
}

impl FieldError {
    pub fn new(path: impl Into<String>, reason: FieldErrorReason, message: impl Into<String>) -> Self {
        Self { path: path.into(), reason, message: message.into() }
    }

    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(path, FieldErrorReason::Invalid, message)
    }

    pub fn required(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(path, FieldErrorReason::Required, message)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

//! One value of the configuration, from text and to text.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::units::{parse_bytes, parse_duration, show_bytes, show_duration};

/// A type that a key may have. Files, the environment and flags all arrive as
/// text, so that a value means the same wherever it is written.
pub trait Setting: Sized {
    fn parse(text: &str) -> Result<Self, String>;
    fn show(&self) -> String;

    /// What the key's limits are about: a count, milliseconds, bytes.
    fn measure(&self) -> Option<u64> {
        None
    }

    /// A limit, written as a value of this type.
    fn show_measure(measure: u64) -> String {
        measure.to_string()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes(pub u64);

impl Bytes {
    pub fn new(bytes: usize) -> Self {
        Self(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// No machine that this runs on has less than 64 bits.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people on a terminal, JSON otherwise.
    Auto,
    Human,
    Json,
}

/// For commands whose format is a flag of its own.
pub fn log_format(text: &str) -> Result<LogFormat, String> {
    LogFormat::parse(text)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    On,
    Off,
}

impl Setting for Switch {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "on" => Ok(Self::On),
            "off" => Ok(Self::Off),
            _ => Err(format!("`{text}` is neither `on` nor `off`")),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
        .into()
    }
}

impl Setting for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("it is empty: name a path".into()) } else { Ok(text.into()) }
    }

    fn show(&self) -> String {
        self.display().to_string()
    }
}

/// Absent by default.
impl Setting for Option<PathBuf> {
    fn parse(text: &str) -> Result<Self, String> {
        PathBuf::parse(text).map(Some)
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(String::new, Setting::show)
    }
}

impl Setting for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.into())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl Setting for SocketAddr {
    fn parse(text: &str) -> Result<Self, String> {
        let expected = "is not an address and a port: write it as `127.0.0.1:7300`, `0.0.0.0:7300` or `[::1]:7300`";
        text.parse().map_err(|_| format!("`{text}` {expected}"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for bool {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("`{text}` is neither `true` nor `false`")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for LogFormat {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "human" => Ok(Self::Human),
            "json" => Ok(Self::Json),
            _ => Err(format!("`{text}` is not a log format: choose `auto`, `human` or `json`")),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Auto => "auto",
            Self::Human => "human",
            Self::Json => "json",
        }
        .into()
    }
}

impl Setting for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        parse_duration(text)
    }

    fn show(&self) -> String {
        show_duration(*self)
    }

    fn measure(&self) -> Option<u64> {
        u64::try_from(self.as_millis()).ok()
    }

    fn show_measure(measure: u64) -> String {
        show_duration(Self::from_millis(measure))
    }
}

impl Setting for Bytes {
    fn parse(text: &str) -> Result<Self, String> {
        parse_bytes(text).map(Self)
    }

    fn show(&self) -> String {
        show_bytes(self.0)
    }

    fn measure(&self) -> Option<u64> {
        Some(self.0)
    }

    fn show_measure(measure: u64) -> String {
        show_bytes(measure)
    }
}

macro_rules! count {
    ($type:ty) => {
        impl Setting for $type {
            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|_| format!("`{text}` is not a whole number that fits"))
            }

            fn show(&self) -> String {
                self.to_string()
            }

            fn measure(&self) -> Option<u64> {
                u64::try_from(*self).ok()
            }
        }
    };
}

count!(usize);
count!(u32);
count!(u64);

//! Layers over the defaults: file, environment, flags.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};

use super::keys::{self, KEYS, Key};
use super::{Config, file};
use crate::nearest::nearest;

/// Everything outside the code that decides; read by the caller, so that a
/// test decides what it is.
#[derive(Default)]
pub struct Sources {
    pub file: Option<PathBuf>,
    /// The variables that begin with `TIDEGATE_`, and `RUST_LOG`.
    pub environment: HashMap<String, String>,
    /// `--set KEY=VALUE`, the later one wins.
    pub set: Vec<(String, String)>,
    /// By the key of their own flags: the plainer word, so the stronger one.
    pub flags: Vec<(&'static str, String)>,
}

/// Variables with this prefix that other commands read.
const OTHER_VARIABLES: &[&str] = &[
    "TIDEGATE_CONFIG",
    "TIDEGATE_SERVER",
    "TIDEGATE_TOKEN",
    "TIDEGATE_TOKEN_FILE",
    "TIDEGATE_CA_FILE",
    "TIDEGATE_CRD_CORPUS",
];

/// The configuration, and warnings for the log.
pub fn load(sources: &Sources) -> Result<(Config, Vec<String>)> {
    let mut config = Config::default();
    if let Some(path) = &sources.file {
        for entry in file::read(path)? {
            let line = entry.line.map_or_else(String::new, |line| format!(":{line}"));
            apply(&mut config, &format!("{}{line}", path.display()), &entry.path, &entry.text)?;
        }
    }
    let warnings = apply_environment(&mut config, &sources.environment)?;
    for (path, text) in &sources.set {
        apply(&mut config, "--set", path, text)?;
    }
    for (path, text) in &sources.flags {
        let flag = keys::find(path).and_then(|key| key.flag).unwrap_or_default();
        apply(&mut config, flag, path, text)?;
    }
    check(&config)?;
    Ok((config, warnings))
}

fn apply(config: &mut Config, place: &str, path: &str, text: &str) -> Result<()> {
    let Some(key) = keys::find(path) else {
        let hint = match nearest(path, KEYS.iter().map(|key| key.path)) {
            Some(near) => format!(": did you mean `{near}`?"),
            None => ": docs/configuration.md lists them all".into(),
        };
        bail!("{place}: there is no key `{path}`{hint}");
    };
    set(config, place, key, text)
}

fn set(config: &mut Config, place: &str, key: &Key, text: &str) -> Result<()> {
    (key.set)(config, text).map_err(|reason| anyhow!("{place}: {}: {reason}", key.path))
}

fn apply_environment(config: &mut Config, environment: &HashMap<String, String>) -> Result<Vec<String>> {
    for key in KEYS {
        let variable = key.variable();
        if let Some(text) = environment.get(&variable) {
            set(config, &variable, key, text)?;
        }
    }
    if let Some(filter) = environment.get("RUST_LOG").filter(|filter| !filter.is_empty()) {
        config.log.filter.clone_from(filter);
    }
    Ok(unknown_variables(environment))
}

/// Only a warning: Kubernetes itself puts `TIDEGATE_PORT` and its like into
/// every container beside a Service of that name.
fn unknown_variables(environment: &HashMap<String, String>) -> Vec<String> {
    let known: Vec<String> = KEYS.iter().map(Key::variable).collect();
    let is_known = |name: &str| known.iter().any(|known| known == name) || OTHER_VARIABLES.contains(&name);
    let is_service_link = |name: &str| name.starts_with("TIDEGATE_PORT") || name.starts_with("TIDEGATE_SERVICE_");
    let mut unknown: Vec<&String> = environment
        .keys()
        .filter(|name| name.starts_with("TIDEGATE_") && !is_known(name) && !is_service_link(name))
        .collect();
    unknown.sort();
    let meant = |name: &str| {
        nearest(name, known.iter().map(String::as_str))
            .map_or_else(String::new, |near| format!(": did you mean {near}?"))
    };
    unknown
        .into_iter()
        .map(|name| format!("the environment variable {name} is not a setting and was ignored{}", meant(name)))
        .collect()
}

/// What one key alone cannot tell.
fn check(config: &Config) -> Result<()> {
    match (&config.tls.cert, &config.tls.key) {
        (Some(cert), None) => bail!("tls.cert is {} but tls.key is not set: give both, or neither", cert.display()),
        (None, Some(key)) => bail!("tls.key is {} but tls.cert is not set: give both, or neither", key.display()),
        _ => {}
    }
    if let Err(error) = tracing_subscriber::EnvFilter::try_new(&config.log.filter) {
        bail!(
            "log.filter is `{}`, which is not a filter ({error}): write it as `info` or `info,tidegate_store=debug`",
            config.log.filter
        );
    }
    Ok(())
}

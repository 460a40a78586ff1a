//! What ARCHITECTURE.md promises of the source itself.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

/// No source of the crate says any of `words`, tests aside.
fn check_absent(name: &str, words: &[&str]) {
    for (path, text) in sources(&crates().join(name).join("src")) {
        let is_test = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
            || path.components().any(|part| part.as_os_str() == "tests");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in words.iter().filter(|_| !is_test) {
            assert!(!code.contains(word), "{} says `{word}`", path.display());
        }
    }
}

#[test]
fn model_and_admission_perform_no_io() {
    for name in ["model", "admission"] {
        check_absent(
            name,
            &[
                "std::fs",
                "TcpStream",
                "TcpListener",
                "UdpSocket",
                "std::process",
                "tokio",
                "std::env",
                "SystemTime::now",
                "Utc::now",
            ],
        );
    }
}

#[test]
fn only_the_binary_reads_the_environment() {
    for name in ["model", "admission", "store", "git", "server", "runtime", "controllers", "reverser", "tls", "client"]
    {
        check_absent(name, &["env::var", "env::args", "env::current_dir", "env::home_dir", "env::temp_dir"]);
    }
}

#[test]
fn the_layers_do_not_know_each_other() {
    check_absent("store", &["axum", "hyper", "graphql", "tidegate_server", "tidegate_admission"]);
    check_absent("git", &["axum", "hyper", "tidegate_model", "tidegate_store", "tidegate_server"]);
    for (path, text) in sources(&crates().join("server/src/api")) {
        assert!(!text.contains("graphql::") && !text.contains("async_graphql"), "{} knows GraphQL", path.display());
    }
}

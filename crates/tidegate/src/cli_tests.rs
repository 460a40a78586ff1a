//! What may be typed, and that the documents type nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};

use crate::cli::Cli;
use crate::config;

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

/// Clap breaks a longer one in the middle of a sentence, or of a command.
#[test]
fn no_line_below_the_options_is_wider_than_a_pipe_is_taken_for() {
    fn check(command: &clap::Command) {
        let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in below.lines() {
            assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

/// Of a command, or of the one that it belongs to; and every flag says what it
/// is for.
#[test]
fn every_command_has_an_example() {
    fn check(command: &clap::Command, outer: &str) {
        let below = format!("{outer}{}", command.get_after_help().map(ToString::to_string).unwrap_or_default());
        let name = command.get_name();
        let is_leaf = !command.has_subcommands();
        assert!(!is_leaf || below.contains("Example") || name == "help", "{name}");
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            assert!(arg.get_help().is_some(), "{name}: {} is not described", arg.get_id());
        }
        command.get_subcommands().filter(|inner| !inner.is_hide_set()).for_each(|inner| check(inner, &below));
    }
    Cli::command().get_subcommands().filter(|inner| !inner.is_hide_set()).for_each(|inner| check(inner, ""));
}

#[test]
fn what_is_refused_before_anything_runs() {
    for line in [
        "tidegate",
        "tidegate get",
        "tidegate check a b",
        "tidegate check --output xml",
        "tidegate get products -A -n x",
        "tidegate get products -o xml",
        "tidegate get products --limit 0",
        "tidegate watch products --since 1 --initial",
        "tidegate watch products --timeout soon",
        "tidegate token create --service-account robot",
        "tidegate token create --service-account a/b/c",
        "tidegate serve --set window.age",
        "tidegate store import",
        "tidegate control --lease-duration 1500ms",
        "tidegate control --lease-duration 2h",
        "tidegate control --holder=",
        "tidegate control --holder=a\u{1b}[2J",
    ] {
        let error = Cli::try_parse_from(line.split(' ')).err().unwrap_or_else(|| panic!("{line} is accepted"));
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn the_flags_of_the_reference_are_flags_of_serve() {
    let command = Cli::command();
    let serve = command.find_subcommand("serve").unwrap();
    for flag in config::flags() {
        let exists = serve.get_arguments().any(|arg| arg.get_long().is_some_and(|long| format!("--{long}") == flag));
        assert!(exists, "serve has no {flag}");
    }
}

#[test]
fn every_command_in_the_documents_can_be_typed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md")];
    markdown_files(&root.join("docs"), &mut files);
    let mut typed = 0;
    for file in files.iter().filter(|file| file.exists()) {
        for line in commands(&fs::read_to_string(file).unwrap()) {
            typed += 1;
            let parsed = Cli::try_parse_from(line.split_whitespace());
            let refusal = parsed.err().filter(|error| error.use_stderr());
            assert!(refusal.is_none(), "{}: {line}: {}", file.display(), refusal.unwrap());
        }
    }
    assert!(typed > 20, "only {typed} commands found: does the search still work?");
}

fn markdown_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines of fenced blocks that call `tidegate`, each up to its comment,
/// pipe or redirection; those with quotes, variables or line breaks are for a
/// shell to read.
fn commands(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let line = line.strip_prefix("$ ").unwrap_or(line);
        if is_code && line.starts_with("tidegate ") {
            let end = [" #", " |", " >", " &", " 2>"].iter().filter_map(|stop| line.find(stop)).min();
            let command = line[..end.unwrap_or(line.len())].trim_end();
            if !command.contains(['"', '\'', '$', '\\']) {
                found.push(command);
            }
        }
    }
    found
}

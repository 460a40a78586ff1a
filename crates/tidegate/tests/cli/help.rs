//! Help texts: the first thing that anybody reads.

use expect_test::expect;

use super::process::{said, tidegate};

#[test]
fn help_is_enough_to_get_going() {
    let directory = tempfile::tempdir().unwrap();
    let help = said(tidegate(directory.path()).arg("help")).good();
    expect![[r#"
        Git and a Kubernetes-style API, kept in step

        Usage: tidegate <COMMAND>

        Commands:
          serve        Run the server: Git repositories, the store, the GraphQL API, the watch
          control      Run the controller manager of a server as a process of its own
          reverse      Write every change of a Kubernetes cluster to Git, with its author
          check        Check the manifests of a work tree as a push would be checked
          get          Show objects as a table, YAML or JSON
          watch        Follow the changes of objects; resumes by itself after a lost connection
          kinds        List the kinds that the server knows
          whoami       Say who the token is
          token        Create and revoke tokens of service accounts
          repo         Bring repositories up to date, and compare them with the store
          controllers  Show what each controller does, and how far behind it is
          quarantine   List and release the objects that controllers have given up on
          store        Check, compact, export and import the store of a stopped server
          completion   Print a completion script for a shell
          help         Print this message or the help of the given subcommand(s)

        Options:
          -h, --help     Print help
          -V, --version  Print version

        Getting started:
          tidegate serve                     a server on http://127.0.0.1:7300, data in ./tidegate-data
          tidegate whoami                    in the same directory: finds ./tidegate-data/admin.token
          tidegate kinds                     what can be listed and watched
          tidegate get products -A           a table of all products
          tidegate watch products -o json    one line an event, until Ctrl-C

        Exit codes: 0 it worked, 1 it failed, 2 it was called wrongly.
    "#]]
    .assert_eq(&help);
}

#[test]
fn every_command_has_help_and_version() {
    let directory = tempfile::tempdir().unwrap();
    for command in [
        "serve",
        "reverse",
        "reverse install",
        "check",
        "get",
        "watch",
        "kinds",
        "whoami",
        "token",
        "token create",
        "token revoke",
        "store",
        "store import",
        "completion",
    ] {
        let help = said(tidegate(directory.path()).args(command.split(' ')).arg("--help")).good();
        assert!(help.contains("Usage: tidegate"), "{command}: {help}");
    }
    assert!(said(tidegate(directory.path()).arg("--version")).good().starts_with("tidegate "));
}

#[test]
fn completion_scripts() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(tidegate(directory.path()).args(["completion", shell])).good().contains("tidegate"), "{shell}");
    }
}

#[test]
fn wrong_calls_have_their_own_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    for (line, expected) in [
        ("get", 2),
        ("check missing", 2),
        ("check --output xml", 2),
        ("check --with-server", 1),
        ("frobnicate", 2),
        ("serve --set nothing.here=1", 2),
        ("serve --listen nowhere", 2),
        ("serve --config missing.yaml", 2),
        ("get products x -l a=b", 2),
        ("whoami", 1),
        ("whoami --token-file missing", 1),
    ] {
        let said = said(tidegate(directory.path()).args(line.split(' ')));
        assert_eq!(said.code, Some(expected), "{line}: {}", said.err);
        assert!(said.err.contains("error"), "{line}: {}", said.err);
    }
}

/// `tidegate … | head` is no failure.
#[test]
fn a_reader_that_has_enough_ends_it_quietly() {
    let directory = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = tidegate(directory.path()).args(["serve", "--show-config"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
}

#[test]
fn the_configuration_that_is_shown_comes_with_what_was_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let said = said(tidegate(directory.path()).args(["serve", "--show-config"]).env("TIDEGATE_LISTN", "x"));
    let expected = "warning: the environment variable TIDEGATE_LISTN is not a setting and was ignored: did you mean TIDEGATE_LISTEN?\n";
    assert_eq!((said.code, &*said.err), (Some(0), expected));
}

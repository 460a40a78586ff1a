//! The chart's values are the program's flags.

use std::collections::{BTreeMap, BTreeSet};

use clap::{CommandFactory, Parser};
use tidegate_model::yaml;
use tidegate_testkit::programs::helm;

use crate::cli::Cli;
use crate::reverse_args::WORK_DIR;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/tidegate-reverser");
/// For an operator outside of the cluster, which is not the chart's.
const OUTSIDE: [&str; 4] = ["kubeconfig", "context", "webhook-url", "help"];

/// The arguments of the chart's container.
fn args(settings: &[&str]) -> Vec<String> {
    let mut command = vec!["template", "reverser", CHART, "--namespace", "ops", "--kube-version", "1.36.0"];
    settings.iter().for_each(|setting| command.extend(["--set", setting]));
    let documents = yaml::parse_documents(&helm(&command)).unwrap();
    let deployment = documents.iter().find(|document| document.value["kind"] == "Deployment").unwrap();
    let args = deployment.value["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    args.iter().map(|arg| arg.as_str().unwrap().to_owned()).collect()
}

/// `--flag=value` as a pair; a flag without a value has an empty one.
fn flags(args: &[String]) -> BTreeMap<String, String> {
    let flags = args.iter().filter_map(|arg| arg.strip_prefix("--"));
    let pair = |flag: &str| flag.split_once('=').map_or((flag.into(), String::new()), |(a, b)| (a.into(), b.into()));
    flags.map(pair).collect()
}

/// Each flag with its default, if it has one.
fn own_flags() -> BTreeMap<String, Option<String>> {
    let mut command = Cli::command();
    command.build();
    let reverse = command.find_subcommand("reverse").unwrap();
    let default = |arg: &clap::Arg| arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    reverse.get_arguments().filter_map(|arg| Some((arg.get_long()?.to_owned(), default(arg)))).collect()
}

fn parse(args: Vec<String>) {
    let line = std::iter::once("tidegate".to_owned()).chain(args);
    Cli::try_parse_from(line).map(drop).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn every_flag_has_a_value_in_the_chart() {
    let everything = args(&[
        "discoveryExclude={widgets}",
        "noCrossNamespaceRefs=true",
        "allowPlainHttp=true",
        "webhook.existingSecret=certificate",
    ]);
    let own: BTreeSet<_> = own_flags().into_keys().filter(|flag| !OUTSIDE.contains(&flag.as_str())).collect();
    let given: BTreeSet<_> = flags(&everything).into_keys().collect();
    assert_eq!(given, own);
    parse(everything);
}

#[test]
fn the_charts_defaults_are_the_programs() {
    let (own, args) = (own_flags(), args(&[]));
    // What the chart decides by where it is installed.
    let placed =
        ["lease-namespace", "lease-name", "webhook-name", "webhook-service", "webhook-listen", "health-listen"];
    for (flag, value) in flags(&args).iter().filter(|(flag, _)| !placed.contains(&flag.as_str())) {
        // The program's own has a second choice, for a laptop.
        let own = if flag == "work-dir" { Some(WORK_DIR) } else { own[flag].as_deref() };
        assert_eq!(own, Some(&**value), "--{flag}");
    }
    parse(args);
}

#[test]
fn large_numbers_of_a_values_file_stay_numbers() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "flags: {git-batch-max-files: 2000000}\n").unwrap();
    let path = file.path().display().to_string();
    let text = helm(&["template", "reverser", CHART, "--kube-version", "1.36.0", "--values", &path]);
    assert!(text.contains("--git-batch-max-files=2000000"), "{text}");
}

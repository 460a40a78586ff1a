//! The layers, through `load`.

use super::keys::KEYS;
use super::*;

struct Given {
    file: &'static str,
    environment: &'static [(&'static str, &'static str)],
    flags: &'static [(&'static str, &'static str)],
}

const NOTHING: Given = Given { file: "", environment: &[], flags: &[] };

fn loaded(given: &Given) -> Result<(Config, Vec<String>), String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tidegate.yaml");
    std::fs::write(&path, given.file).unwrap();
    let pairs = given.environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let set = given.flags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let sources = Sources { file: Some(path), environment: pairs.collect(), set: set.collect(), flags: Vec::new() };
    load(&sources).map_err(|error| format!("{error:#}").replace(&format!("{}/", directory.path().display()), ""))
}

#[test]
fn nothing_given_is_the_default() {
    assert_eq!(load(&Sources::default()).unwrap().0, Config::default());
    assert_eq!(loaded(&NOTHING).unwrap().0, Config::default());
    assert_eq!(loaded(&Given { file: "# nothing\n", ..NOTHING }).unwrap().0, Config::default());
}

#[test]
fn each_layer_overrides_the_one_before() {
    let file = "listen: 127.0.0.1:1\nwindow:\n  age: 1h\n  events: 100\nlist: {snapshot_ttl: 1m}\n";
    let environment: &[_] = &[("TIDEGATE_WINDOW_AGE", "2h"), ("TIDEGATE_LISTEN", "127.0.0.1:2")];
    let flags: &[_] = &[("listen", "127.0.0.1:3")];
    let (config, warnings) = loaded(&Given { file, environment, flags }).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:3");
    assert_eq!(config.window.age, Duration::from_secs(7200));
    assert_eq!(config.window.events, 100);
    assert_eq!(config.list.snapshot_ttl, Duration::from_secs(60));
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn refusals_name_place_reason_and_remedy() {
    for (given, expected) in [
        (
            Given { file: "window:\n  agee: 1h\n", ..NOTHING },
            "tidegate.yaml:2: there is no key `window.agee`: did you mean `window.age`?",
        ),
        (Given { file: "a: 1\na: 2\n", ..NOTHING }, "tidegate.yaml: line 2"),
        (Given { file: "- a\n", ..NOTHING }, "tidegate.yaml: it is not a map of keys"),
        (Given { file: "listen:\n", ..NOTHING }, "tidegate.yaml: listen: it has no value"),
        (Given { file: "listen: [a]\n", ..NOTHING }, "tidegate.yaml: listen: a list is not expected"),
        (Given { file: "listen: {port: 1}\n", ..NOTHING }, "there is no key `listen.port`"),
        (Given { file: "window: 5\n", ..NOTHING }, "there is no key `window`"),
        (
            Given { environment: &[("TIDEGATE_LISTEN", "nowhere")], ..NOTHING },
            "TIDEGATE_LISTEN: listen: `nowhere` is not an address and a port: write it as `127.0.0.1:7300`",
        ),
        (
            Given { flags: &[("window.events", "0")], ..NOTHING },
            "--set: window.events: `0` is out of range: choose from 16 to 10000000000",
        ),
        (Given { flags: &[("window.bytes", "9EiB")], ..NOTHING }, "`9EiB` is not a size"),
        (Given { flags: &[("drain_time", "0s")], ..NOTHING }, "choose from 1ms to 1h"),
        (Given { flags: &[("tls.cert", "c.pem")], ..NOTHING }, "tls.cert is c.pem but tls.key is not set"),
        (Given { flags: &[("tls.key", "k.pem")], ..NOTHING }, "tls.key is k.pem but tls.cert is not set"),
        (Given { flags: &[("log.filter", "a=b=c")], ..NOTHING }, "log.filter is `a=b=c`, which is not a filter"),
        (Given { flags: &[("log.format", "xml")], ..NOTHING }, "choose `auto`, `human` or `json`"),
        (Given { flags: &[("allow_plaintext", "1")], ..NOTHING }, "neither `true` nor `false`"),
    ] {
        let refusal = loaded(&given).unwrap_err();
        assert!(refusal.contains(expected), "expected {expected:?} in {refusal:?}");
    }
}

#[test]
fn a_flag_of_its_own_is_the_strongest_and_named_when_refused() {
    let set = vec![("listen".to_owned(), "127.0.0.1:1".to_owned())];
    let load_with =
        |flag: &str| load(&Sources { set: set.clone(), flags: vec![("listen", flag.into())], ..Sources::default() });
    assert_eq!(load_with("127.0.0.1:2").unwrap().0.listen.port(), 2);
    assert!(load_with("x").unwrap_err().to_string().starts_with("--listen: listen: `x` is not an address"));
}

#[test]
fn a_mistyped_variable_is_warned_about() {
    let environment: &[_] = &[
        ("TIDEGATE_WINDOW_AGEE", "1h"),
        ("TIDEGATE_TOKEN_FILE", "x"),
        ("TIDEGATE_PORT", "tcp://10.0.0.1:7300"),
        ("TIDEGATE_SERVICE_HOST", "10.0.0.1"),
        ("RUST_LOG", "debug"),
    ];
    let (config, warnings) = loaded(&Given { environment, ..NOTHING }).unwrap();
    assert_eq!(config.log.filter, "debug");
    assert_eq!(
        warnings,
        [
            "the environment variable TIDEGATE_WINDOW_AGEE is not a setting and was ignored: did you mean TIDEGATE_WINDOW_AGE?"
        ]
    );
}

/// Limits that the defaults break, or texts that do not parse back, would
/// show here.
#[test]
fn every_default_is_a_value_that_its_key_accepts() {
    for key in KEYS {
        let mut config = Config::default();
        let text = (key.show)(&config);
        if !text.is_empty() {
            (key.set)(&mut config, &text).unwrap_or_else(|reason| panic!("{}: {reason}", key.path));
        }
        assert_eq!(config, Config::default(), "{}", key.path);
    }
}

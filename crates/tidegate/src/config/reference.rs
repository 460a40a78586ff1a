//! `docs/configuration.md` is written here, and compared in a test.

use expect_test::expect_file;

use super::Config;
use super::keys::KEYS;

const HEAD: &str = "\
# Configuration

`tidegate serve` needs no configuration. Everything below has a default and can be given in three places, in this order
of growing strength:

1. a YAML file, `tidegate serve --config FILE` (or the variable `TIDEGATE_CONFIG`), with the keys nested at their dots:
   ```yaml
   listen: 0.0.0.0:7300
   tls:
     cert: /etc/tidegate/tls.crt
     key: /etc/tidegate/tls.key
   window:
     age: 48h
   ```
2. environment variables,
3. flags: those in the table, and `--set KEY=VALUE` for every key (`--set list.snapshot_ttl=1m`).

`tidegate serve --show-config` prints what they amount to.

A key that does not exist, a value out of its range and a contradiction are refused at the start, with the nearest name or
the remedy. A `TIDEGATE_…` variable that is no setting is only warned about. Durations are written as `500ms`, `90s`,
`1h30m` or `7d`; sizes as `512KiB`, `32MiB`, `4GiB` or a number of bytes.

| Key | Default | Variable | Flag | Meaning |
|---|---|---|---|---|
";

const TAIL: &str = "
Logs go to stderr. `RUST_LOG` overrides `log.filter`.

The commands that are clients of a server (`get`, `watch`, `kinds`, `whoami`, `token`, `repo`, `controllers`, `quarantine`, `control`, `check --with-server`) read other variables; see [cli.md](cli.md).
";

fn reference() -> String {
    let defaults = Config::default();
    let rows = KEYS.iter().map(|key| {
        let default = match (key.show)(&defaults) {
            text if text.is_empty() => String::new(),
            text => format!("`{text}`"),
        };
        let flag = key.flag.map_or_else(String::new, |flag| format!("`{flag}`"));
        format!("| `{}` | {default} | `{}` | {flag} | {} |\n", key.path, key.variable(), key.help)
    });
    format!("{HEAD}{}{TAIL}", rows.collect::<String>())
}

/// `UPDATE_EXPECT=1 cargo test -p tidegate reference` writes it anew.
#[test]
fn the_reference_is_what_the_code_says() {
    expect_file!["../../../../docs/configuration.md"].assert_eq(&reference());
}

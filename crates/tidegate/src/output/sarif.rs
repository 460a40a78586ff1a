//! SARIF 2.1.0: what code scanning reads.

use serde_json::{Value, json};
use tidegate_model::manifest::Diagnostic;

use super::report::{Level, message};

/// One rule a level; a result names its rule by its place in this list.
const RULES: [(&str, &str); 2] =
    [("refused", "A push with this would be refused"), ("doubtful", "Admitted, but probably not meant")];

pub(super) fn log<'d>(found: impl Iterator<Item = (Level, &'d Diagnostic)>) -> Value {
    let rules: Vec<Value> =
        RULES.iter().map(|(id, text)| json!({"id": id, "shortDescription": {"text": text}})).collect();
    let driver = json!({
        "name": "tidegate",
        "version": env!("CARGO_PKG_VERSION"),
        "informationUri": env!("CARGO_PKG_REPOSITORY"),
        "rules": rules,
    });
    let results: Vec<Value> = found.map(|(level, found)| result(level, found)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    })
}

fn result(level: Level, found: &Diagnostic) -> Value {
    let index = usize::from(level == Level::Warning);
    let mut place = json!({"artifactLocation": {"uri": uri(&found.file)}});
    if let Some(line) = found.line {
        place["region"] = json!({"startLine": line});
    }
    json!({
        "ruleId": RULES[index].0,
        "ruleIndex": index,
        "level": level.word(),
        "message": {"text": message(found)},
        "locations": [{"physicalLocation": place}],
    })
}

/// A relative reference, or `file:///…` for an absolute path.
fn uri(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let part = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    path.bytes().fold(scheme.to_owned(), |uri, byte| uri + &part(byte))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_log() {
        let problem =
            Diagnostic { field: Some("kind".into()), ..Diagnostic::at("shop/a.yaml", 2, "there is no kind X") };
        let warning = Diagnostic::of_file("b.md", "old");
        let found = [(Level::Error, &problem), (Level::Warning, &warning)];
        let mut log = log(found.into_iter());
        log["runs"][0]["tool"]["driver"]["version"] = "…".into();
        expect![[r#"
            {
              "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
              "runs": [
                {
                  "results": [
                    {
                      "level": "error",
                      "locations": [
                        {
                          "physicalLocation": {
                            "artifactLocation": {
                              "uri": "shop/a.yaml"
                            },
                            "region": {
                              "startLine": 2
                            }
                          }
                        }
                      ],
                      "message": {
                        "text": "kind: there is no kind X"
                      },
                      "ruleId": "refused",
                      "ruleIndex": 0
                    },
                    {
                      "level": "warning",
                      "locations": [
                        {
                          "physicalLocation": {
                            "artifactLocation": {
                              "uri": "b.md"
                            }
                          }
                        }
                      ],
                      "message": {
                        "text": "old"
                      },
                      "ruleId": "doubtful",
                      "ruleIndex": 1
                    }
                  ],
                  "tool": {
                    "driver": {
                      "informationUri": "https://github.com/tidegate/tidegate",
                      "name": "tidegate",
                      "rules": [
                        {
                          "id": "refused",
                          "shortDescription": {
                            "text": "A push with this would be refused"
                          }
                        },
                        {
                          "id": "doubtful",
                          "shortDescription": {
                            "text": "Admitted, but probably not meant"
                          }
                        }
                      ],
                      "version": "…"
                    }
                  }
                }
              ],
              "version": "2.1.0"
            }"#]]
        .assert_eq(&format!("{log:#}"));
    }

    #[test]
    fn without_findings_there_are_results_all_the_same() {
        // Absent results mean that nothing was checked.
        assert_eq!(log(std::iter::empty())["runs"][0]["results"], json!([]));
    }

    #[test]
    fn paths_as_references() {
        for (path, expected) in [
            ("a/b.yaml", "a/b.yaml"),
            ("a b/ü#1?.md", "a%20b/%C3%BC%231%3F.md"),
            ("c:d.yaml", "c%3Ad.yaml"),
            ("/srv/a.yaml", "file:///srv/a.yaml"),
        ] {
            assert_eq!(uri(path), expected);
        }
    }
}

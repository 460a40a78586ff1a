//! cert-manager and the Prometheus operator: large schemas with few rules.

use serde_json::json;

use crate::{check, check_stored};

fn object(api_version: &str, kind: &str, spec: &str) -> String {
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: one, namespace: ops}}\nspec: {spec}")
}

#[test]
fn certificates() {
    let certificate = |spec: &str| object("cert-manager.io/v1", "Certificate", spec);
    check(
        &certificate(
            "{secretName: shop-tls, dnsNames: [shop.example.com], duration: 2160h, privateKey: {algorithm: ECDSA, size: 256}, issuerRef: {name: letsencrypt, kind: ClusterIssuer}}",
        ),
        &[],
    );
    check(&certificate("{dnsNames: [a.b]}"), &["spec.issuerRef: Required value", "spec.secretName: Required value"]);
    check(
        &certificate("{secretName: s, issuerRef: {name: i}, privateKey: {algorithm: DSA}}"),
        &["spec.privateKey.algorithm: Unsupported value: \"DSA\": supported values: \"RSA\", \"ECDSA\", \"Ed25519\""],
    );
    check(
        &certificate("{secretName: s, issuerRef: {name: i}, revisionHistoryLimit: 3000000000}"),
        &["spec.revisionHistoryLimit: Invalid value: 3000000000: must be of type int32"],
    );
    check(
        &certificate("{secretName: s, issuerRef: {name: i}, isCA: 'yes'}"),
        &["spec.isCA: Invalid value: \"yes\": must be of type boolean: \"string\""],
    );
}

#[test]
fn webhook_solvers_keep_their_own_configuration() {
    let issuer = object(
        "cert-manager.io/v1",
        "Issuer",
        "{acme: {server: 'https://acme.example', privateKeySecretRef: {name: key}, solvers: [{dns01: {webhook: {groupName: example.com, solverName: own, config: {any: {thing: [1, two]}}}}}]}}",
    );
    check(&issuer, &[]);
    check_stored(&issuer, "/spec/acme/solvers/0/dns01/webhook/config", json!({"any": {"thing": [1, "two"]}}));
}

#[test]
fn service_monitors() {
    let monitor = |spec: &str| object("monitoring.coreos.com/v1", "ServiceMonitor", spec);
    check(
        &monitor(
            "{selector: {matchLabels: {app: shop}}, endpoints: [{port: metrics, interval: 30s}, {targetPort: 8080}, {targetPort: web}]}",
        ),
        &[],
    );
    check(
        &monitor("{selector: {}, endpoints: [{targetPort: true}]}"),
        &["spec.endpoints[0].targetPort: Invalid value: true: must be of type integer or string: \"boolean\""],
    );
    check(
        &monitor("{selector: {}, endpoints: [{interval: 30 seconds}]}"),
        &[
            "spec.endpoints[0].interval: Invalid value: \"30 seconds\": should match '^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$'",
        ],
    );
    check(&monitor("{endpoints: []}"), &["spec.selector: Required value"]);
}

#[test]
fn prometheus_rules() {
    let rules = |spec: &str| object("monitoring.coreos.com/v1", "PrometheusRule", spec);
    check(
        &rules(
            "{groups: [{name: a, interval: 1m, rules: [{alert: Down, expr: up == 0, for: 5m, labels: {severity: page}}, {record: x, expr: 5}]}]}",
        ),
        &[],
    );
    check(
        &rules("{groups: [{name: a, rules: []}, {name: a, rules: []}]}"),
        &["spec.groups[1]: Duplicate value: {\"name\":\"a\"}"],
    );
    check(&rules("{groups: [{name: a, rules: [{alert: Down}]}]}"), &["spec.groups[0].rules[0].expr: Required value"]);
    check(
        &rules("{groups: [{name: '', rules: []}]}"),
        &["spec.groups[0].name: Invalid value: \"\": should be at least 1 chars long"],
    );
}

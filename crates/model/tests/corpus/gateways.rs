//! Gateway API: gateways, classes, policies.

use serde_json::json;

use crate::{check, check_stored, check_update};

fn gateway(spec: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: edge, namespace: infra}}\nspec: {spec}"
    )
}

#[test]
fn an_ordinary_gateway_is_admitted_with_its_defaults() {
    let gateway = gateway(
        "{gatewayClassName: istio, listeners: [
            {name: http, protocol: HTTP, port: 80},
            {name: https, protocol: HTTPS, port: 443, hostname: shop.example.com,
             tls: {certificateRefs: [{name: shop-tls}]}}]}",
    );
    check(&gateway, &[]);
    check_stored(&gateway, "/spec/listeners/0/allowedRoutes", json!({"namespaces": {"from": "Same"}}));
    check_stored(&gateway, "/spec/listeners/1/tls/mode", json!("Terminate"));
    check_stored(
        &gateway,
        "/spec/listeners/1/tls/certificateRefs/0",
        json!({"group": "", "kind": "Secret", "name": "shop-tls"}),
    );
}

#[test]
fn what_the_schema_requires() {
    check(
        &gateway("{listeners: [{name: http, protocol: HTTP, port: 80}]}"),
        &[
            "spec.gatewayClassName: Required value",
            "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ],
    );
    check(
        &gateway("{gatewayClassName: a, listeners: []}"),
        &["spec.listeners: Invalid value: 0: should have at least 1 items"],
    );
    check(
        &gateway("{gatewayClassName: a, listeners: [{name: http, protocol: HTTP, port: 0}]}"),
        &["spec.listeners[0].port: Invalid value: 0: should be greater than or equal to 1"],
    );
    check(
        &gateway("{gatewayClassName: a, listeners: [{name: http, protocol: HTTP, port: '80'}]}"),
        &[
            "spec.listeners[0].port: Invalid value: \"80\": must be of type integer: \"string\"",
            "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ],
    );
    check(
        &gateway("{gatewayClassName: a, listeners: [{name: Http, protocol: HTTP, port: 80}]}"),
        &[
            "spec.listeners[0].name: Invalid value: \"Http\": should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'",
        ],
    );
}

#[test]
fn listeners_are_unique() {
    check(
        &gateway(
            "{gatewayClassName: a, listeners: [{name: x, protocol: HTTP, port: 80}, {name: x, protocol: HTTP, port: 81}]}",
        ),
        &[
            "spec.listeners[1]: Duplicate value: {\"name\":\"x\"}",
            "spec.listeners: Invalid value: \"array\": Listener name must be unique within the Gateway",
        ],
    );
    check(
        &gateway(
            "{gatewayClassName: a, listeners: [{name: x, protocol: HTTP, port: 80}, {name: z, protocol: HTTP, port: 80}]}",
        ),
        &[
            "spec.listeners: Invalid value: \"array\": Combination of port, protocol and hostname must be unique for each listener",
        ],
    );
    check(
        &gateway(
            "{gatewayClassName: a, listeners: [{name: x, protocol: HTTP, port: 80, hostname: a.b}, {name: z, protocol: HTTP, port: 80}]}",
        ),
        &[],
    );
}

#[test]
fn tls_follows_the_protocol() {
    check(
        &gateway(
            "{gatewayClassName: a, listeners: [{name: x, protocol: HTTP, port: 80, tls: {certificateRefs: [{name: c}]}}]}",
        ),
        &["spec.listeners: Invalid value: \"array\": tls must not be specified for protocols ['HTTP', 'TCP', 'UDP']"],
    );
    check(
        &gateway("{gatewayClassName: a, listeners: [{name: x, protocol: HTTPS, port: 443, tls: {mode: Passthrough}}]}"),
        &["spec.listeners: Invalid value: \"array\": tls mode must be Terminate for protocol HTTPS"],
    );
    check(
        &gateway("{gatewayClassName: a, listeners: [{name: x, protocol: TLS, port: 443}]}"),
        &["spec.listeners: Invalid value: \"array\": tls mode must be set for protocol TLS"],
    );
    check(
        &gateway("{gatewayClassName: a, listeners: [{name: x, protocol: TCP, port: 443, hostname: a.b}]}"),
        &["spec.listeners: Invalid value: \"array\": hostname must not be specified for protocols ['TCP', 'UDP']"],
    );
    check(
        &gateway(
            "{gatewayClassName: a, listeners: [{name: x, protocol: HTTPS, port: 443, tls: {certificateRefs: []}}]}",
        ),
        &[
            "spec.listeners[0].tls: Invalid value: \"object\": no such key: options evaluating rule: certificateRefs or options must be specified when mode is Terminate",
        ],
    );
}

#[test]
fn addresses_are_unique_and_well_formed() {
    let with = |addresses: &str| {
        gateway(&format!(
            "{{gatewayClassName: a, listeners: [{{name: x, protocol: HTTP, port: 80}}], addresses: {addresses}}}"
        ))
    };
    check(&with("[{value: 10.0.0.1}, {value: 10.0.0.2}, {type: Hostname, value: a.example}]"), &[]);
    check(
        &with("[{value: 10.0.0.1}, {value: 10.0.0.1}]"),
        &["spec.addresses: Invalid value: \"array\": IPAddress values must be unique"],
    );
    check(
        &with("[{value: 10.0.0}]"),
        &["spec.addresses[0]: Invalid value: \"object\": must validate one and only one schema (oneOf)"],
    );
    check(
        &with("[{type: Hostname, value: A_b}]"),
        &[
            "spec.addresses[0]: Invalid value: \"object\": Hostname value must be empty or contain only valid characters (matching ^(\\*\\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$)",
        ],
    );
}

#[test]
fn map_keys_are_checked_by_rules() {
    let with = |labels: &str| {
        gateway(&format!(
            "{{gatewayClassName: a, listeners: [{{name: x, protocol: HTTP, port: 80}}], infrastructure: {{labels: {labels}}}}}"
        ))
    };
    check(&with("{example.com/team: shop, app: edge}"), &[]);
    check(
        &with("{'-app': edge}"),
        &[
            "spec.infrastructure.labels: Invalid value: \"object\": Label keys must be in the form of an optional DNS subdomain prefix followed by a required name segment of up to 63 characters.",
        ],
    );
}

#[test]
fn a_class_keeps_its_controller() {
    let class = |controller: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {{name: istio}}\nspec: {{controllerName: {controller}}}"
        )
    };
    check(&class("example.com/one"), &[]);
    check_update(Some(&class("example.com/one")), &class("example.com/one"), &[]);
    check_update(
        Some(&class("example.com/one")),
        &class("example.com/two"),
        &["spec.controllerName: Invalid value: \"example.com/two\": field is immutable"],
    );
}

#[test]
fn unknown_fields_are_pruned() {
    let gateway =
        gateway("{gatewayClassName: a, shape: round, listeners: [{name: x, protocol: HTTP, port: 80, color: red}]}");
    check_stored(&gateway, "/spec/shape", json!(null));
    check_stored(&gateway, "/spec/listeners/0/color", json!(null));
}

#[test]
fn a_policy_names_exactly_one_authority() {
    let policy = |validation: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: BackendTLSPolicy\nmetadata: {{name: p, namespace: infra}}\nspec: {{targetRefs: [{{group: '', kind: Service, name: s}}], validation: {validation}}}"
        )
    };
    check(&policy("{hostname: a.example, wellKnownCACertificates: System}"), &[]);
    check(
        &policy("{hostname: a.example}"),
        &[
            "spec.validation: Invalid value: \"object\": must specify either CACertificateRefs or WellKnownCACertificates",
        ],
    );
    check(
        &policy(
            "{hostname: a.example, wellKnownCACertificates: System, caCertificateRefs: [{group: '', kind: ConfigMap, name: c}]}",
        ),
        &[
            "spec.validation: Invalid value: \"object\": must not contain both CACertificateRefs and WellKnownCACertificates",
        ],
    );
    check(
        &policy(
            "{hostname: a.example, wellKnownCACertificates: System, subjectAltNames: [{type: URI, hostname: a.example}]}",
        ),
        &[
            "spec.validation.subjectAltNames[0]: Invalid value: \"object\": SubjectAltName element must not contain Hostname, if Type is not set to Hostname",
            "spec.validation.subjectAltNames[0]: Invalid value: \"object\": SubjectAltName element must contain URI, if Type is set to URI",
        ],
    );
}

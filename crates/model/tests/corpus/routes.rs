//! Gateway API: routes, where most of its rules are.

use serde_json::json;

use crate::{check, check_stored};

fn route(spec: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: shop, namespace: store}}\nspec: {spec}"
    )
}

fn rule(rule: &str) -> String {
    route(&format!("{{rules: [{rule}]}}"))
}

#[test]
fn an_ordinary_route_is_admitted_with_its_defaults() {
    let route = route(
        "{parentRefs: [{name: edge}], hostnames: [shop.example.com], rules: [
            {matches: [{path: {value: /cart}}, {headers: [{name: x-canary, value: 'yes'}], method: GET}],
             filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x, value: z}]}}],
             backendRefs: [{name: cart, port: 8080}]},
            {backendRefs: [{name: home, port: 80, weight: 9}, {name: home2, port: 80}]}]}",
    );
    check(&route, &[]);
    check_stored(
        &route,
        "/spec/parentRefs/0",
        json!({"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"}),
    );
    check_stored(&route, "/spec/rules/0/matches/0/path", json!({"type": "PathPrefix", "value": "/cart"}));
    check_stored(&route, "/spec/rules/1/matches", json!([{"path": {"type": "PathPrefix", "value": "/"}}]));
    check_stored(&route, "/spec/rules/1/backendRefs/1/weight", json!(1));
}

#[test]
fn paths() {
    let table = [
        ("{value: cart}", "value must be an absolute path and start with '/' when type one of ['Exact', 'PathPrefix']"),
        ("{value: /a//b}", "must not contain '//' when type one of ['Exact', 'PathPrefix']"),
        ("{value: /a/./b}", "must not contain '/./' when type one of ['Exact', 'PathPrefix']"),
        ("{value: /a/../b}", "must not contain '/../' when type one of ['Exact', 'PathPrefix']"),
        ("{value: /a%2fb}", "must not contain '%2f' when type one of ['Exact', 'PathPrefix']"),
        ("{value: /a/.., type: Exact}", "must not end with '/..' when type one of ['Exact', 'PathPrefix']"),
    ];
    for (path, message) in table {
        let wrong = format!("spec.rules[0].matches[0].path: Invalid value: \"object\": {message}");
        check(&rule(&format!("{{matches: [{{path: {path}}}]}}")), &[&wrong]);
    }
    check(&rule("{matches: [{path: {type: RegularExpression, value: 'a//b'}}]}"), &[]);
    check(
        &rule("{matches: [{path: {type: Fuzzy, value: /a}}]}"),
        &[
            "spec.rules[0].matches[0].path.type: Unsupported value: \"Fuzzy\": supported values: \"Exact\", \"PathPrefix\", \"RegularExpression\"",
            "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ],
    );
}

#[test]
fn filters_match_their_type() {
    check(
        &rule("{filters: [{type: RequestRedirect}]}"),
        &[
            "spec.rules[0].filters[0]: Invalid value: \"object\": filter.requestRedirect must be specified for RequestRedirect filter.type",
        ],
    );
    check(
        &rule("{filters: [{type: URLRewrite, urlRewrite: {hostname: a.b}, requestRedirect: {statusCode: 301}}]}"),
        &[
            "spec.rules[0].filters[0]: Invalid value: \"object\": filter.requestRedirect must be nil if the filter.type is not RequestRedirect",
        ],
    );
    check(
        &rule("{filters: [{type: RequestRedirect, requestRedirect: {}}, {type: URLRewrite, urlRewrite: {}}]}"),
        &[
            "spec.rules[0].filters: Invalid value: \"array\": May specify either httpRouteFilterRequestRedirect or httpRouteFilterRequestRewrite, but not both",
        ],
    );
    check(
        &rule(
            "{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {}}, {type: RequestHeaderModifier, requestHeaderModifier: {}}]}",
        ),
        &["spec.rules[0].filters: Invalid value: \"array\": RequestHeaderModifier filter cannot be repeated"],
    );
    check(
        &rule(
            "{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}], backendRefs: [{name: a, port: 80}]}",
        ),
        &[
            "spec.rules[0]: Invalid value: \"object\": RequestRedirect filter must not be used together with backendRefs",
        ],
    );
    check(
        &rule(
            "{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: x}, {name: a, value: z}]}}]}",
        ),
        &["spec.rules[0].filters[0].requestHeaderModifier.set[1]: Duplicate value: {\"name\":\"a\"}"],
    );
}

#[test]
fn prefix_rewrites_need_one_prefix_match() {
    let rewrite =
        "filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /v2}}}]";
    let message = "spec.rules[0]: Invalid value: \"object\": When using URLRewrite filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified";
    check(&rule(&format!("{{{rewrite}, matches: [{{path: {{value: /v1}}}}]}}")), &[]);
    check(&rule(&format!("{{{rewrite}, matches: [{{path: {{type: Exact, value: /v1}}}}]}}")), &[message]);
    check(&rule(&format!("{{{rewrite}, matches: [{{path: {{value: /v1}}}}, {{path: {{value: /v3}}}}]}}")), &[message]);
}

#[test]
fn backends_and_timeouts() {
    check(
        &rule("{backendRefs: [{name: cart}]}"),
        &["spec.rules[0].backendRefs[0]: Invalid value: \"object\": Must have port for Service reference"],
    );
    check(&rule("{backendRefs: [{group: example.com, kind: Bucket, name: cart}]}"), &[]);
    check(&rule("{timeouts: {request: 10s, backendRequest: 2s}}"), &[]);
    check(
        &rule("{timeouts: {request: 1s, backendRequest: 1m30s}}"),
        &[
            "spec.rules[0].timeouts: Invalid value: \"object\": backendRequest timeout cannot be longer than request timeout",
        ],
    );
    check(&rule("{timeouts: {request: 0s, backendRequest: 1h}}"), &[]);
    check(
        &rule(
            "{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: m, port: 1}, fraction: {numerator: 3, denominator: 2}}}]}",
        ),
        &[
            "spec.rules[0].filters[0].requestMirror.fraction: Invalid value: \"object\": numerator must be less than or equal to denominator",
        ],
    );
}

#[test]
fn parents_are_told_apart_by_section() {
    check(&route("{parentRefs: [{name: edge, sectionName: a}, {name: edge, sectionName: b}]}"), &[]);
    check(&route("{parentRefs: [{name: edge}, {name: edge, namespace: other}]}"), &[]);
    check(
        &route("{parentRefs: [{name: edge}, {name: edge, sectionName: a}]}"),
        &[
            "spec.parentRefs: Invalid value: \"array\": sectionName must be specified when parentRefs includes 2 or more references to the same parent",
        ],
    );
    check(
        &route("{parentRefs: [{name: edge, sectionName: a}, {name: edge, sectionName: a}]}"),
        &[
            "spec.parentRefs: Invalid value: \"array\": sectionName must be unique when parentRefs includes 2 or more references to the same parent",
        ],
    );
}

#[test]
fn matches_are_bounded_over_all_rules() {
    let matches = |count: usize| {
        let all: Vec<String> = (0..count).map(|at| format!("{{path: {{value: /{at}}}}}")).collect();
        format!("{{matches: [{}]}}", all.join(", "))
    };
    check(&route(&format!("{{rules: [{}, {}]}}", matches(64), matches(64))), &[]);
    check(
        &route(&format!("{{rules: [{}, {}, {}]}}", matches(64), matches(64), matches(1))),
        &[
            "spec.rules: Invalid value: \"array\": While 16 rules and 64 matches per rule are allowed, the total number of matches across all rules in a route must be less than 128",
        ],
    );
    check(
        &route(&format!("{{rules: [{}]}}", matches(65))),
        &[
            "spec.rules[0].matches: Too many: 65: must have at most 64 items",
            "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ],
    );
}

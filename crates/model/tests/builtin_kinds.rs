//! The built-in kinds: what is refused at the push, and what is filled in.

use serde_json::json;
use tidegate_model::kinds::KindSet;
use tidegate_model::{Object, yaml};

/// Rules may rely on the types and required fields of the schema.
const SKIPPED: &str = "some validation rules were not checked because the object was invalid; \
     correct the existing errors to complete validation";

fn parse(kind: &str, name: &str, rest: &str) -> Object {
    let kinds = KindSet::builtin();
    let found = kinds.iter().find(|candidate| &*candidate.kind == kind).expect("a built-in kind");
    let api_version = found.api_version(found.storage_version());
    let namespace = match found.scope {
        tidegate_model::kinds::Scope::Namespaced => ", namespace: shop",
        tidegate_model::kinds::Scope::Cluster => "",
    };
    let text = format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: '{name}'{namespace}}}\n{rest}\n");
    Object::from_value(yaml::parse(&text).expect("a test object is YAML")).expect("a test object is an object")
}

fn admit(object: &mut Object, old: Option<&Object>) -> Vec<String> {
    let kinds = KindSet::builtin();
    let (kind, version) = kinds.by_gvk(object.api_version(), object.kind()).expect("a built-in kind");
    kind.admit(version, object, old).iter().map(ToString::to_string).collect()
}

/// What is wrong with an object of `kind`; nothing means that it is admitted.
fn check(kind: &str, rest: &str, wrong: &[&str]) {
    assert_eq!(admit(&mut parse(kind, "one", rest), None), wrong, "{kind}: {rest}");
}

#[test]
fn products() {
    check(
        "Product",
        "spec: {title: Desk Lamp, body: 'A lamp.', categoryRef: {name: lighting}, tags: [a, a], options: [{name: color, values: [black]}]}",
        &[],
    );
    check("Product", "spec: {categoryRef: {kind: CategoryTaxonomy}}", &["spec.categoryRef.name: Required value"]);
    check(
        "Product",
        "spec: {categoryRef: {name: ''}}",
        &["spec.categoryRef.name: Invalid value: \"\": should be at least 1 chars long"],
    );
    check(
        "Product",
        "spec: {categoryRef: {kind: Shelf, name: a}}",
        &["spec.categoryRef.kind: Unsupported value: \"Shelf\": supported values: \"CategoryTaxonomy\""],
    );
    check("Product", "spec: {media: [{fileRef: {optional: true}}]}", &["spec.media[0].fileRef.name: Required value"]);
    check(
        "Product",
        "spec: {options: [{name: color}, {name: size}, {name: color}]}",
        &["spec.options[2]: Duplicate value: {\"name\":\"color\"}"],
    );
    let long = "ä".repeat(200);
    check("Product", &format!("spec: {{title: {long}}}"), &[]);
    check("Product", &format!("spec: {{title: {long}a}}"), &["spec.title: Too long: may not be longer than 200"]);
}

#[test]
fn variants() {
    check(
        "ProductVariant",
        "spec: {productRef: {name: lamp}, sku: L-1, selectedOptions: [{name: color, value: black}], inventory: {managed: true, policy: ''}}",
        &[],
    );
    check("ProductVariant", "spec: {sku: L-1}", &["spec.productRef: Required value", SKIPPED]);
    check(
        "ProductVariant",
        "spec: {productRef: {name: lamp}, inventory: {policy: sell}}",
        &[
            "spec.inventory.policy: Unsupported value: \"sell\": supported values: \"\", \"deny\", \"backorder\"",
            SKIPPED,
        ],
    );
}

#[test]
fn prices() {
    let price = |price: &str| {
        format!("spec: {{productRef: {{name: lamp}}, pricing: {{priceSet: {{name: retail, prices: [{price}]}}}}}}")
    };
    let at = "spec.pricing.priceSet.prices[0]";
    let table: &[(&str, &[String])] = &[
        (
            "{currencyCode: EUR, amount: '12.50', priority: 1, strategy: {type: tiered}, validFromTime: 2026-01-01T00:00:00Z, validUntilTime: 2026-12-31T00:00:00Z, quantity: {min: 1, max: 10}, eligibility: {operator: Any, constraints: [{expression: 'customer.group == \"vip\"'}]}}",
            &[],
        ),
        (
            "{currencyCode: EUR, amount: '1', validFromTime: 2026-01-02T00:00:00Z, validUntilTime: 2026-01-02T01:00:00+02:00}",
            &[format!(
                "{at}.validUntilTime: Invalid value: \"object\": validUntilTime must not be before validFromTime"
            )],
        ),
        (
            "{currencyCode: EUR, amount: '1', quantity: {min: 5, max: 4}}",
            &[format!("{at}.quantity.min: Invalid value: \"object\": min must not be greater than max")],
        ),
        (
            "{currencyCode: EUR, amount: '1', strategy: {type: free}}",
            &[
                format!(
                    "{at}.strategy.type: Unsupported value: \"free\": supported values: \"fixed\", \"fixedUnitPrice\", \"percentage\", \"tiered\""
                ),
                SKIPPED.into(),
            ],
        ),
        (
            "{currencyCode: EUR, amount: twelve}",
            &[format!("{at}.amount: Invalid value: \"twelve\": should match '^-?[0-9]+(\\.[0-9]+)?$'")],
        ),
        (
            "{currencyCode: EUR, amount: '1,5'}",
            &[format!("{at}.amount: Invalid value: \"1,5\": should match '^-?[0-9]+(\\.[0-9]+)?$'")],
        ),
        (
            "{currencyCode: EUR, amount: '1', eligibility: {constraints: [{expression: 'a >'}]}}",
            &[format!(
                "{at}.eligibility.constraints[0].expression: Invalid value: \"a >\": must be a CEL expression: 1:4: Syntax error: mismatched input '<EOF>' expecting {{'[', '{{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}}"
            )],
        ),
    ];
    for (text, wrong) in table {
        let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
        check("ProductVariant", &price(text), &wrong);
    }
}

#[test]
fn currencies_are_those_of_iso_4217() {
    let price = |code: &str| {
        format!(
            "spec: {{productRef: {{name: lamp}}, pricing: {{priceSet: {{prices: [{{currencyCode: {code}, amount: '1'}}]}}}}}}"
        )
    };
    for code in ["EUR", "USD", "ISK", "ZWG"] {
        check("ProductVariant", &price(code), &[]);
    }
    for code in ["eur", "XYZ", "EURO", "DEM"] {
        let errors = admit(&mut parse("ProductVariant", "one", &price(code)), None);
        assert!(errors[0].contains("currencyCode: Unsupported value"), "{errors:?}");
    }
}

#[test]
fn categories_collections_and_files() {
    check("CategoryTaxonomy", "spec: {title: Lighting, parentRef: {name: home}}", &[]);
    check(
        "CategoryTaxonomy",
        "spec: {title: Lighting, parentRef: {name: one}}",
        &["spec.parentRef.name: Invalid value: \"object\": a category cannot be its own parent"],
    );
    check("CategoryTaxonomy", "spec: {body: x}", &["spec.title: Required value", SKIPPED]);
    check(
        "Collection",
        "spec: {title: Winter, selector: {matchLabels: {season: winter}, matchExpressions: [{key: example.com/a, operator: In, values: [b]}, {key: c, operator: Exists}]}}",
        &[],
    );
    check(
        "Collection",
        "spec: {title: Winter, targetRef: {kind: File}}",
        &["spec.targetRef.kind: Unsupported value: \"File\": supported values: \"Product\"", SKIPPED],
    );
    let at = "spec.selector.matchExpressions[0]";
    check(
        "Collection",
        "spec: {title: W, selector: {matchExpressions: [{key: a, operator: In}]}}",
        &[&format!("{at}.values: Invalid value: \"object\": In and NotIn need values")],
    );
    check(
        "Collection",
        "spec: {title: W, selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}",
        &[&format!("{at}.values: Invalid value: \"object\": Exists and DoesNotExist take no values")],
    );
    check(
        "Collection",
        "spec: {title: W, selector: {matchLabels: {'a b': c}}}",
        &[
            "spec.selector.matchLabels: Invalid value: \"object\": keys must be label keys, such as 'season' or 'example.com/season'",
        ],
    );
    check("File", "spec: {contentType: image/png, source: {type: http, uri: 'https://a.example/b.png'}}", &[]);
    check("File", "spec: {contentType: image/png}", &["spec.source: Required value"]);
}

#[test]
fn repositories_are_filled_in() {
    let mut repository =
        parse("Repository", "one", "spec: {kinds: [{kind: Namespace}], remote: {url: 'https://a.example/b.git'}}");
    assert_eq!(admit(&mut repository, None), [""; 0]);
    let spec = json!({
        "branch": "main", "allowClusterScoped": false, "allowForce": false,
        "kinds": [{"group": "", "kind": "Namespace"}],
        "remote": {"url": "https://a.example/b.git", "interval": "1m"},
    });
    assert_eq!(repository.spec(), Some(&spec));
    let mut bare = parse("Repository", "one", "");
    assert_eq!(admit(&mut bare, None), [""; 0]);
    assert_eq!(bare.spec(), Some(&json!({"branch": "main", "allowClusterScoped": false, "allowForce": false})));
    check(
        "Repository",
        "spec: {path: ../etc}",
        &["spec.path: Invalid value: \"../etc\": must be a path inside the repository, without '.' and '..'"],
    );
    check("Repository", "spec: {remote: {url: 'ssh://git@a.example/b'}}", &[]);
    check("Repository", "spec: {remote: {url: 'git@a.example:b.git'}}", &[]);
    check(
        "Repository",
        "spec: {remote: {url: '--upload-pack=touch x'}}",
        &[
            "spec.remote.url: Invalid value: \"--upload-pack=touch x\": should match '^((https?|ssh)://([^/:@ ]+@)?[^/@ ]+(/[^ ]*)?|[^/:@ ]+@[^/: ]+:[^ ]+)$'",
        ],
    );
}

#[test]
fn branches_are_names_that_git_takes() {
    for good in ["main", "a/b", "release-1.0", "ä", "a@b", "x.lock.y", "HEAD"] {
        check(
            "Repository",
            &format!("spec: {{branch: '{good}', remote: {{url: 'https://a.b/c', branch: '{good}'}}}}"),
            &[],
        );
    }
    let bad = [
        "a..b", "-a", "/a", "a/", "a//b", "a b", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b", r"a\b", "a.", ".a", "a/.b",
        "a.lock", "a.lock/b", "@", "a@{b",
    ];
    for bad in bad {
        let mut repository = parse("Repository", "one", &format!("spec: {{branch: '{bad}'}}"));
        let errors = admit(&mut repository, None);
        assert!(errors.len() == 1 && errors[0].starts_with("spec.branch: Invalid value:"), "{bad}: {errors:?}");
        let mut repository =
            parse("Repository", "one", &format!("spec: {{remote: {{url: 'https://a.b/c', branch: '{bad}'}}}}"));
        let errors = admit(&mut repository, None);
        assert!(errors.len() == 1 && errors[0].starts_with("spec.remote.branch: Invalid value:"), "{bad}: {errors:?}");
    }
    for control in ["\\u0001", "\\t", "\\u007f"] {
        let mut repository = parse("Repository", "one", &format!("spec: {{branch: \"a{control}\"}}"));
        assert_eq!(admit(&mut repository, None).len(), 1, "{control}");
    }
}

#[test]
fn roles_and_bindings() {
    check(
        "ClusterRole",
        "rules: [{apiGroups: [''], resources: [namespaces], verbs: [get]}, {nonResourceURLs: [/metrics], verbs: [get]}]",
        &[],
    );
    check(
        "ClusterRole",
        "rules: [{apiGroups: [''], resources: [namespaces], verbs: []}]",
        &["rules[0].verbs: Invalid value: 0: should have at least 1 items"],
    );
    check(
        "Role",
        "rules: [{resources: [leases], verbs: [get]}]",
        &["rules[0]: Invalid value: \"object\": resource rules must supply at least one api group and one resource"],
    );
    let binding = |role: &str| format!("roleRef: {{kind: Role, name: {role}}}\nsubjects: [{{kind: User, name: ada}}]");
    check("RoleBinding", &binding("reader"), &[]);
    check(
        "RoleBinding",
        "roleRef: {kind: Role, name: a}\nsubjects: [{kind: ServiceAccount, name: bot}]",
        &["subjects[0].namespace: Required value: a ServiceAccount subject needs its namespace"],
    );
    let mut old = parse("RoleBinding", "one", &binding("reader"));
    assert_eq!(admit(&mut old, None), [""; 0]);
    let mut new = parse("RoleBinding", "one", &binding("writer"));
    assert_eq!(
        admit(&mut new, Some(&old)),
        ["roleRef: Invalid value: \"object\": cannot change roleRef: delete the binding and make another"]
    );
    assert_eq!(admit(&mut parse("ClusterRole", "system:reader", "rules: []"), None), [""; 0]);
}

#[test]
fn definitions_check_what_they_define() {
    let crd = |names: &str, schema: &str| {
        format!(
            "spec: {{group: example.com, scope: Namespaced, names: {names}, versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}]}}"
        )
    };
    let check = |rest: &str, wrong: &[&str]| {
        assert_eq!(admit(&mut parse("CustomResourceDefinition", "widgets.example.com", rest), None), wrong, "{rest}");
    };
    check(&crd("{kind: Widget, plural: widgets}", "{type: object}"), &[]);
    check(
        &crd("{kind: Widget, plural: gadgets}", "{type: object}"),
        &[
            "metadata.name: Invalid value: \"widgets.example.com\": must be spec.names.plural+\".\"+spec.group: \"gadgets.example.com\"",
        ],
    );
    check(
        &crd(
            "{kind: Widget, plural: widgets}",
            "{type: object, properties: {spec: {type: object, properties: {a: {}}}}}",
        ),
        &[
            "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].type: Required value: must not be empty for specified fields; say x-kubernetes-preserve-unknown-fields: true for any value",
        ],
    );
}

#[test]
fn names_follow_the_kind() {
    let names = |kind: &str, name: &str, rest: &str| admit(&mut parse(kind, name, rest), None).len();
    assert_eq!(names("Namespace", "shop", ""), 0);
    assert_eq!(names("Namespace", "a.b", ""), 1);
    assert_eq!(names("Product", "a.b", ""), 0);
    assert_eq!(names("Product", "A", ""), 1);
    assert_eq!(names("Role", "a/b", ""), 1);
}

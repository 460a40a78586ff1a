//! The client commands against a server.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::process::Site;

#[test]
fn objects_in_every_format() {
    let site = Site::new();
    let _server = site.serve();

    let table = site.say("get products").good();
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("NAME ") && rows[0].ends_with("AGE"), "{table}");
    assert!(rows[1].starts_with("chair ") && rows[2].starts_with("desk-lamp ") && rows.len() == 3, "{table}");
    assert!(site.say("get products -A").good().starts_with("NAMESPACE"));

    let yaml = site.say("get product desk-lamp -o yaml").good();
    assert_eq!(site.say("get product/desk-lamp -o yaml").good(), yaml);
    let two = site.say("get product/chair desk-lamp");
    assert_eq!((two.code, two.err.contains("two names, `chair` and `desk-lamp`")), (Some(2), true), "{}", two.err);
    assert!(yaml.starts_with("apiVersion: catalog.gitstore.dev/v1beta1\nkind: Product\n"), "{yaml}");
    assert!(yaml.contains("title: Desk Lamp"), "{yaml}");
    assert_eq!(site.say("get products -o yaml").good().matches("---\n").count(), 2);

    let list: serde_json::Value = serde_json::from_str(&site.say("get products -o json").good()).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    assert_eq!(list["items"][0]["metadata"]["name"], "chair");

    assert_eq!(site.say("get products -o name --limit 1").good(), "products.catalog.gitstore.dev/chair\n");
    let one = "get products -o name --field-selector metadata.name=desk-lamp";
    assert_eq!(site.say(one).good(), "products.catalog.gitstore.dev/desk-lamp\n");
    let nothing = site.say("get files");
    assert_eq!((nothing.code, &*nothing.out), (Some(0), ""));
    assert!(nothing.err.contains("no files found"), "{}", nothing.err);
}

#[test]
fn failures_say_what_to_type_next() {
    let site = Site::new();
    let unreachable = {
        fs::write(site.path("token"), "x").unwrap();
        site.say("whoami --token-file token")
    };
    assert!(
        unreachable.err.contains("cannot reach") && unreachable.err.contains("tidegate serve"),
        "{}",
        unreachable.err
    );
    let _server = site.serve();
    for (line, code, expected) in [
        ("get prodcuts", 1, "did you mean `products`?"),
        (
            "get product nothing",
            1,
            "product `nothing` not found in the namespace default\n  next: `tidegate get products",
        ),
        ("get products -l a=b=c", 2, "labelSelector"),
        ("watch products -l a=b=c", 2, "labelSelector"),
        ("get products --field-selector spec.nothing=1", 2, "fieldSelector"),
        ("whoami --token-file token", 1, "UNAUTHENTICATED"),
        ("whoami --server nowhere", 2, "nowhere"),
        ("control --server nowhere", 2, "nowhere"),
        ("watch products --since nonsense", 2, "INVALID_RESOURCE_VERSION"),
        ("watch products --since 1000000000000001", 1, "WATCH_EXPIRED"),
        ("watch products --since 9999999999999999", 2, "is before or after every resourceVersion"),
        ("repo verify foo", 2, "such as `shop/catalogue`"),
        ("token create --service-account robot", 2, "such as `default/robot`"),
        (
            "token create --service-account default/robot -o nosuch/x",
            1,
            "error: failed to create nosuch/x: No such file or directory (os error 2)\n",
        ),
        ("token create --service-account default/robot -o token", 1, "name a new file, or remove this one first"),
        ("token create --service-account default/nobody", 1, "there is no service account default/nobody"),
    ] {
        let said = site.say(line);
        assert_eq!(said.code, Some(code), "{line}: {}{}", said.out, said.err);
        assert!(said.err.contains(expected), "{line}: {}", said.err);
    }
}

#[test]
fn a_token_from_its_making_to_its_end() {
    let site = Site::new();
    site.define("other.yaml", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other, namespace: default}\n");
    let _server = site.serve();
    assert!(site.say("whoami").good().contains("system:masters"));

    let made = site.say("token create --service-account default/robot --ttl 1h -o robot.token");
    assert_eq!((made.code, &*made.out), (Some(0), ""), "{}", made.err);
    assert_eq!(fs::metadata(site.path("robot.token")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        site.say("token create --service-account default/robot -o robot.token").code,
        Some(1),
        "never overwritten"
    );

    let whoami = site.say("whoami --token-file robot.token").good();
    assert!(whoami.contains("system:serviceaccount:default:robot"), "{whoami}");
    site.say("get products --token-file robot.token").good();
    let forbidden = site.say("token create --service-account default/robot --token-file robot.token");
    assert!(forbidden.err.contains("FORBIDDEN"), "{}", forbidden.err);

    let id = whoami.lines().find_map(|line| line.strip_prefix("token id")).unwrap().trim();
    // Whose it is not, cannot revoke it, and does not say that it did.
    let other = site.say(&format!("token revoke --service-account default/other {id}"));
    assert!(other.err.contains("if default/other has no token of that id, nothing has changed"), "{}", other.err);
    site.say("whoami --token-file robot.token").good();
    site.say(&format!("token revoke --service-account default/robot {id}")).good();
    let revoked = site.say("whoami --token-file robot.token");
    assert!(revoked.err.contains("revoked"), "{}", revoked.err);

    let piped = site.say("token create --service-account default/robot").good();
    let again = site.client("whoami").env("TIDEGATE_TOKEN", piped.trim()).output().unwrap();
    assert!(String::from_utf8(again.stdout).unwrap().contains(":robot"));
}

#[test]
fn the_kinds() {
    let site = Site::new();
    let _server = site.serve();
    let table = site.say("kinds").good();
    assert!(table.lines().any(|line| line.starts_with("products ") && line.ends_with("Product")), "{table}");
}

//! The example of a hook, as its page says: a real endpoint in Python, signed
//! calls, a server that was started by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tidegate_testkit::daemon::free_port;

use super::git::{Hosted, Tree};
use super::process::{Running, Site, until_seen};

const SECRET: &str = "s3cret";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn endpoint(port: u16, secret: &str) -> Running {
    let mut command = Command::new("python3");
    command.arg(examples().join("hooks/python/endpoint.py")).arg(port.to_string()).env("HOOK_SECRET", secret);
    let mut endpoint = Running::start(&mut command);
    endpoint.out.until("waiting for calls");
    endpoint
}

/// The page's files, with the port of this endpoint.
fn push_example(tree: &Tree, port: u16, more: &str) {
    for file in ["crd.yaml", "blog.yaml"] {
        tree.write(file, &fs::read_to_string(examples().join("sites").join(file)).unwrap());
    }
    let hook = fs::read_to_string(examples().join("hooks/hook.yaml")).unwrap();
    let hook = hook.replace("127.0.0.1:8089", &format!("127.0.0.1:{port}"));
    tree.write("hook.yaml", &format!("{hook}{more}")).commit().pushed();
}

fn blog(site: &Site) -> Value {
    let listed: Value = serde_json::from_str(&site.say("get sites -A -o json").good()).unwrap();
    listed["items"][0].clone()
}

fn until(site: &Site, what: &str, holds: impl Fn(&Value) -> bool) {
    until_seen(what, || {
        let blog = blog(site);
        holds(&blog).then_some(()).ok_or_else(|| format!("{blog:#}"))
    });
}

fn condition<'o>(object: &'o Value, kind: &str) -> &'o Value {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

#[test]
fn the_python_example_reconciles_sites() {
    let port = free_port();
    let _endpoint = endpoint(port, "");
    let Hosted { site, server, tree } = Hosted::start();
    push_example(&tree, port, "");
    until(&site, "the site is served", |blog| {
        condition(blog, "Ready")["reason"] == "Served" && blog["status"]["readyReplicas"] == blog["spec"]["replicas"]
    });
    let changed = fs::read_to_string(examples().join("sites/blog.yaml")).unwrap().replace("replicas: 2", "replicas: 1");
    tree.write("blog.yaml", &changed).commit().pushed();
    until(&site, "a change is answered", |blog| blog["status"]["readyReplicas"] == 1);
    // A hook without its kind is stopped, and nobody is gone.
    tree.git(&["rm", "-q", "crd.yaml", "blog.yaml"]).good();
    tree.commit().pushed();
    until_seen("somebody says why", || {
        let said = site.say("controllers");
        let is_told = |line: &str| line.starts_with("hook.sites.") && line.contains(" none (KindNotFound) ");
        if !said.out.lines().any(is_told) {
            return Err(said.out);
        }
        assert!(said.err.contains("hook sites does not run (KindNotFound): there is no kind Site"), "{}", said.err);
        Ok(())
    });
    drop(server);
}

#[test]
fn an_endpoint_that_is_away_is_told_of_and_need_not_be_waited_for() {
    let port = free_port();
    let Hosted { site, mut server, tree } = Hosted::start();
    push_example(&tree, port, "");
    server.err.until("the endpoint cannot be called");
    until_seen("it is listed", || {
        // Before its controller has said anything of itself, there is none.
        let said = site.say("quarantine list --retrying --controller hook.sites").out;
        let is_told =
            |line: &str| line.contains("/blog ") && line.contains("cannot be reached") && !line.contains(" never ");
        said.lines().any(is_told).then_some(()).ok_or(said)
    });
    assert_eq!(site.say("quarantine list").good().lines().count(), 1, "it is not in quarantine");
    let namespace = blog(&site)["metadata"]["namespace"].as_str().unwrap().to_owned();
    let refused = site.say(&format!("quarantine release {namespace}/blog"));
    assert!(refused.err.contains("is not in quarantine") && refused.err.contains("--retrying"), "{}", refused.err);
    until_seen("it is counted", || {
        let said = site.say("controllers").good();
        let row = said.lines().find(|line| line.starts_with("hook.sites.")).unwrap_or_default();
        let cells: Vec<&str> = row.split_whitespace().collect();
        (cells.get(6) == Some(&"1")).then_some(()).ok_or(said)
    });

    let _endpoint = endpoint(port, "");
    let released = site.say("quarantine release --all --retrying --controller hook.sites");
    // Unless it was its turn in between.
    assert!(
        ["released", "nothing of hook.sites has failed"].iter().any(|text| released.out.contains(text)),
        "{}",
        released.err
    );
    until(&site, "it is served", |blog| condition(blog, "Ready")["reason"] == "Served");
    server.err.until("the endpoint can be called again");
    drop(server);
}

/// There is no controller of it that could say so.
#[test]
fn a_hook_that_never_started_is_shown_with_its_reason() {
    let Hosted { site, server, tree } = Hosted::start();
    let hook = |name: &str, kind: &str, more: &str| {
        format!(
            "apiVersion: tidegate.dev/v1\nkind: ReconcileHook\nmetadata: {{name: {name}}}\nspec:\n  \
             target: {{apiVersion: catalog.gitstore.dev/v1beta1, kind: {kind}}}\n  \
             endpoint: {{url: 'http://127.0.0.1:1/'}}\n{more}"
        )
    };
    let secret = "  secretRef: {namespace: default, name: nowhere}\n";
    tree.write("a.yaml", &hook("unknown.kind", "Produkt", "")).write("b.yaml", &hook("no-secret", "Product", secret));
    tree.write("c.yaml", &hook("no-port", "Product", "").replace(":1/", ":99999/")).commit().pushed();
    until_seen("all are shown", || {
        let said = site.say("controllers");
        for (name, kind, reason) in [
            ("unknown.kind", "Produkt", "KindNotFound"),
            ("no-secret", "Product", "EndpointNotUsable"),
            ("no-port", "Product", "EndpointNotUsable"),
        ] {
            let row = said.out.lines().find(|line| line.starts_with(&format!("hook.{name} ")));
            let is_told = row.is_some_and(|row| row.contains(kind) && row.contains(&format!(" none ({reason}) ")));
            if !is_told || !said.err.contains(&format!("hook {name} does not run ({reason}): ")) {
                return Err(format!("{}{}", said.out, said.err));
            }
        }
        Ok(())
    });
    drop(server);
}

#[test]
fn the_python_example_checks_signatures() {
    let port = free_port();
    let _endpoint = endpoint(port, SECRET);
    let secrets = tempfile::tempdir().unwrap();
    let folder = secrets.path().join("default/sites-hook");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("token"), "another\n").unwrap();
    let Hosted { site, server, tree } = Hosted::start_with(&["--secrets-dir", secrets.path().to_str().unwrap()]);
    push_example(&tree, port, "  secretRef: {namespace: default, name: sites-hook}\n");
    until(&site, "a wrong signature is refused", |blog| {
        let condition = condition(blog, "hook.tidegate.dev/sites");
        condition["reason"] == "Refused" && condition["message"].as_str().unwrap().contains("401")
    });
    // The secret is read for each call; the refusal stands until somebody asks.
    fs::write(folder.join("token"), format!("{SECRET}\n")).unwrap();
    until(&site, "it is in quarantine", |blog| condition(blog, "Stalled")["status"] == "True");
    let by_hook: Value =
        serde_json::from_str(&site.say("quarantine list --controller hook.sites -o json").good()).unwrap();
    assert_eq!((by_hook.as_array().map(Vec::len), by_hook[0]["name"].as_str()), (Some(1), Some("blog")));
    assert!(by_hook[0]["controller"].as_str().unwrap().starts_with("hook.sites."), "{by_hook}");
    let namespace = blog(&site)["metadata"]["namespace"].as_str().unwrap().to_owned();
    site.say(&format!("quarantine release {namespace}/blog")).good();
    until(&site, "the right one is taken", |blog| condition(blog, "Ready")["reason"] == "Served");
    drop(server);
}

//! The controller manager as a process: killed, frozen, taken over from.

use rustix::process::Signal;
use serde_json::Value;

use super::git::{Hosted, Tree};
use super::process::{Running, Site, until, until_seen};

const ROUNDS: usize = 4;

fn product(name: &str, title: &str) -> String {
    format!(
        "apiVersion: catalog.gitstore.dev/v1beta1\nkind: Product\nmetadata: {{name: {name}, namespace: default}}\nspec: {{title: {title}}}\n"
    )
}

fn control(site: &Site, holder: &str) -> Running {
    // Short, for what follows a manager that is gone.
    let mut command = site.client("control --lease-duration 2s --holder");
    Running::start(command.arg(holder))
}

fn push(tree: &Tree, round: usize) {
    for name in ["stool", "table", "sofa"] {
        tree.write(&format!("{name}.yaml"), &product(name, &format!("{name} {round}")));
    }
    tree.write(&format!("new-{round}.yaml"), &product(&format!("new-{round}"), "New"));
    tree.commit();
}

/// Until every product's status speaks of its last generation.
fn settled(site: &Site) {
    until_seen("every status is of the last generation", || {
        let listed: Value = serde_json::from_str(&site.say("get products -A -o json").good()).unwrap();
        let items = listed["items"].as_array().unwrap();
        let is_current = |item: &Value| item["status"]["observedGeneration"] == item["metadata"]["generation"];
        let is_settled = !items.is_empty() && items.iter().all(is_current);
        is_settled.then_some(()).ok_or_else(|| format!("{listed:#}"))
    });
}

#[test]
fn statuses_follow_whoever_is_killed() {
    let Hosted { site, mut server, tree } = Hosted::start_with(&["--controllers=off"]);
    let mut manager = control(&site, "only");
    for round in 0..ROUNDS {
        push(&tree, round);
        until("the push is taken", || tree.push(&["-q"]).code == Some(0));
        manager.signal(Signal::KILL);
        manager.wait();
        if round % 2 == 1 {
            server.signal(Signal::KILL);
            server.wait();
            server = site.serve_with(&["--controllers=off"]);
        }
        manager = control(&site, "only");
        // In the middle of what it found to do.
        manager.err.until("\"leading\"");
    }
    settled(&site);
    let shown = site.say("controllers").good();
    assert!(shown.lines().any(|line| line.contains("Product") && line.contains(" only-")), "{shown}");
    drop((manager, server));
}

/// Whatever there is to say when nothing is to be shown.
#[test]
fn what_operators_are_told() {
    let Hosted { site, server, .. } = Hosted::start_with(&["--controllers=off"]);
    let said = site.say("controllers");
    assert_eq!((said.code, &*said.out), (Some(0), ""), "{}", said.err);
    assert!(said.err.contains("no controller has ever run") && said.err.contains("tidegate control"), "{}", said.err);
    let unknown = site.say("quarantine release --all --controller products");
    assert!(unknown.err.contains("there is no controller `products`"), "{}", unknown.err);

    let mut manager = control(&site, "only");
    manager.err.until("\"leading\"");
    until("all have a leader", || {
        let said = site.say("controllers");
        said.out.lines().any(|line| line.starts_with("products") && line.contains(" only-")) && said.err.is_empty()
    });
    let unknown = site.say("quarantine release --all --controller prodcuts");
    assert_eq!(unknown.code, Some(1));
    for text in [
        "there is no controller `prodcuts`: did you mean `products`?",
        "there are categorytaxonomies, ",
        "productvariants",
    ] {
        assert!(unknown.err.contains(text), "{}", unknown.err);
    }
    assert_eq!(site.say("quarantine list --controller prodcuts").code, Some(1));
    assert_eq!(
        site.say("quarantine release --all --controller products").good(),
        "nothing of products is in quarantine\n"
    );
    for line in ["quarantine release", "quarantine release --controller products"] {
        let said = site.say(line);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(said.err.contains("NAMESPACE/NAME") && said.err.contains("tidegate quarantine list"), "{}", said.err);
    }

    manager.signal(Signal::KILL);
    manager.wait();
    until("the leader is gone", || {
        let said = site.say("controllers");
        let is_gone = said.out.lines().skip(1).all(|line| line.contains("only-") && line.contains(" (gone)"));
        is_gone && said.err.contains("no controller manager runs") && said.err.contains("next: ")
    });
    drop(server);
}

#[test]
fn a_frozen_leader_is_replaced_and_writes_nothing_when_it_wakes() {
    let Hosted { site, server, tree } = Hosted::start_with(&["--controllers=off"]);
    let mut first = control(&site, "first");
    first.err.until("\"leading\"");
    let mut second = control(&site, "second");
    push(&tree, 0);
    tree.pushed();
    settled(&site);
    first.signal(Signal::STOP);
    push(&tree, 1);
    tree.pushed();
    second.err.until("\"leading\"");
    settled(&site);
    first.signal(Signal::CONT);
    first.err.until("the term has ended");
    push(&tree, 2);
    tree.pushed();
    settled(&site);
    // One that stops in good order gives the lease back at once.
    second.signal(Signal::TERM);
    assert!(second.wait().success());
    first.err.until("\"leading\"");
    drop(server);
}

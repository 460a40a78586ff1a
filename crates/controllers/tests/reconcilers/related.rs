//! Related objects: what is sent along, and that a change of it is a call.

use serde_json::{Value, json};
use tidegate_controllers::hooks::{HookOptions, RELATED_OBJECTS_MAX};

use crate::hooks::{Server, WIDGETS, widget};
use crate::plane::moment;
use crate::world::{World, condition};

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
const OWNER: &str = "  related:\n  - {name: owner, apiVersion: catalog.gitstore.dev/v1beta1, kind: Product, field: spec.ownerRef.name}\n";
const PARTS: &str = "  related:\n  - name: parts\n    apiVersion: catalog.gitstore.dev/v1beta1\n    kind: Product\n    selector: {matchLabels: {live: 'yes'}}\n    labelFields: {widget: metadata.name}\n";

fn product(name: &str, title: &str, labels: &str) -> String {
    format!(
        "apiVersion: catalog.gitstore.dev/v1beta1\nkind: Product\nmetadata: {{name: {name}, namespace: shop, labels: {{{labels}}}}}\nspec: {{title: {title}}}\n"
    )
}

fn world(server: &Server, related: &str) -> World {
    let world = World::new();
    let files =
        [("ns.yaml", NAMESPACE), ("crd.yaml", WIDGETS), ("w.yaml", &widget("w", 1)), ("v.yaml", &widget("v", 1))];
    world.push(&files, &[]).unwrap();
    world.apply("hook.yaml", &server.hook(related));
    world
}

/// The last call for a widget, when it is the one.
async fn call(server: &Server, name: &str, is_it: impl Fn(&Value) -> bool) {
    let found = async {
        loop {
            let last = server.calls_for(name).pop().unwrap_or_default();
            if is_it(&last["related"]) {
                return;
            }
            moment().await;
        }
    };
    if tokio::time::timeout(crate::world::PATIENCE, found).await.is_err() {
        panic!("{name} was not called with it; its calls: {:#?}", server.calls_for(name));
    }
}

fn names(related: &Value) -> Vec<&str> {
    let parts = related["parts"].as_array().map_or(&[][..], Vec::as_slice);
    parts.iter().map(|part| part["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_object_of_a_field_comes_changes_and_goes() {
    let server = Server::start().await;
    let world = world(&server, OWNER);
    let running = world.manage(HookOptions::default());
    call(&server, "w", |related| related["owner"].is_null()).await;
    world.apply("p.yaml", &product("lamp", "Lamp", ""));
    call(&server, "w", |related| related["owner"]["spec"]["title"] == "Lamp").await;
    world.apply("p.yaml", &product("lamp", "Light", ""));
    call(&server, "w", |related| related["owner"]["spec"]["title"] == "Light").await;
    world.until("the answer is written", |world| world.get("Widget", "w").unwrap()["status"]["owner"] == "Light").await;
    world.push(&[], &["p.yaml"]).unwrap();
    call(&server, "w", |related| related["owner"].is_null()).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_by_label_come_change_and_go_and_concern_nobody_else() {
    let server = Server::start().await;
    let world = world(&server, PARTS);
    let running = world.manage(HookOptions::default());
    call(&server, "w", |related| related["parts"] == json!([])).await;
    call(&server, "v", |related| related["parts"] == json!([])).await;
    world.apply("a.yaml", &product("a", "A", "widget: w, live: 'yes'"));
    world.apply("b.yaml", &product("b", "B", "widget: w, live: 'no'"));
    call(&server, "w", |related| names(related) == ["a"]).await;
    world.apply("b.yaml", &product("b", "B", "widget: w, live: 'yes'"));
    call(&server, "w", |related| names(related) == ["a", "b"]).await;
    world.apply("a.yaml", &product("a", "A2", "widget: w, live: 'yes'"));
    call(&server, "w", |related| related["parts"][0]["spec"]["title"] == "A2").await;
    assert!(server.calls_for("v").iter().all(|call| call["related"]["parts"] == json!([])));
    let calls_for_v = server.calls_for("v").len();

    world.apply("a.yaml", &product("a", "A2", "widget: v, live: 'yes'"));
    call(&server, "w", |related| names(related) == ["b"]).await;
    call(&server, "v", |related| names(related) == ["a"]).await;
    assert_eq!(calls_for_v, 1, "only what concerns it");
    world.push(&[], &["b.yaml"]).unwrap();
    call(&server, "w", |related| related["parts"] == json!([])).await;
    running.stop().await;
}

/// A verdict is about what was sent: another theme, another verdict.
#[tokio::test(flavor = "multi_thread")]
async fn a_related_object_that_appears_ends_a_quarantine() {
    let server = Server::start().await;
    server.behave(crate::hooks::Behaviour::OwnerOrNever);
    let world = world(&server, OWNER);
    let running = world.manage(HookOptions::default());
    world
        .until("it is given up on", |world| {
            condition(&world.get("Widget", "w").unwrap(), "Stalled")["status"] == "True"
        })
        .await;
    world.apply("p.yaml", &product("lamp", "Lamp", ""));
    world.until("it is answered", |world| world.get("Widget", "w").unwrap()["status"]["owner"] == "Lamp").await;
    world
        .until("it is not stalled any more", |world| condition(&world.get("Widget", "w").unwrap(), "Stalled").is_null())
        .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changed_while_no_manager_ran_is_called_and_nothing_else() {
    let server = Server::start().await;
    let world = world(&server, PARTS);
    world.apply("a.yaml", &product("a", "A", "widget: w, live: 'yes'"));
    world.apply("b.yaml", &product("b", "B", "widget: v, live: 'yes'"));
    let running = world.manage(HookOptions::default());
    call(&server, "w", |related| names(related) == ["a"]).await;
    call(&server, "v", |related| names(related) == ["b"]).await;
    // Their products are reconciled, too, which changes their status.
    world.until_ready("Product", "a", "Ready").await;
    world.until_ready("Product", "b", "Ready").await;
    settled(&world, &server).await;
    // What the hook has heard of is not news.
    running.idle(&world).await;
    running.stop().await;
    let before = (server.calls_for("w").len(), server.calls_for("v").len());

    world.push(&[], &["a.yaml"]).unwrap();
    let running = world.manage(HookOptions::default());
    call(&server, "w", |related| related["parts"] == json!([])).await;
    running.idle(&world).await;
    running.stop().await;
    assert_eq!(server.calls_for("w").len(), before.0 + 1);
    assert_eq!(server.calls_for("v").len(), before.1, "nothing of it changed");
}

/// Until the last calls were made with what there is.
async fn settled(world: &World, server: &Server) {
    for (widget, part) in [("w", "a"), ("v", "b")] {
        let version = world.version_of("Product", part);
        call(server, widget, |related| related["parts"][0]["metadata"]["resourceVersion"] == version).await;
    }
    world
        .until("the notes are written", |world| {
            let state = world.state();
            state.rows.keys().filter(|(_, name)| name.starts_with("note/shop ")).count() == 2
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_can_be_sent_is_said() {
    let server = Server::start().await;
    let world = world(&server, PARTS);
    let files: Vec<(String, String)> = (0..=RELATED_OBJECTS_MAX)
        .map(|at| (format!("p{at}.yaml"), product(&format!("p{at}"), "P", "widget: w, live: 'yes'")))
        .collect();
    let pushed: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    world.push(&pushed, &[]).unwrap();
    let running = world.manage(HookOptions::default());
    world
        .until("it is said", |world| {
            let widget = world.get("Widget", "w").unwrap();
            let condition = condition(&widget, "hook.tidegate.dev/sizes");
            condition["reason"] == "TooMuchRelated"
                && condition["message"].as_str().unwrap().contains("more than 200 objects to send along")
        })
        .await;
    assert!(server.calls_for("w").is_empty());
    world.push(&[], &["p0.yaml"]).unwrap();
    call(&server, "w", |related| names(related).len() == RELATED_OBJECTS_MAX).await;
    running.stop().await;
}

/// Not by mistake: an object that its own answer changes would be called again.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_not_related_to_itself() {
    let server = Server::start().await;
    let all = "  related:\n  - {name: parts, apiVersion: example.com/v1, kind: Widget, selector: {}}\n";
    let world = world(&server, all);
    let running = world.manage(HookOptions::default());
    call(&server, "w", |related| names(related) == ["v"]).await;
    call(&server, "v", |related| names(related) == ["w"]).await;
    running.stop().await;
}

#[test]
fn the_kind_takes_one_way_to_choose() {
    let refused = |more: &str| {
        let world = World::new();
        let hook = format!(
            "apiVersion: tidegate.dev/v1\nkind: ReconcileHook\nmetadata: {{name: h}}\nspec:\n  target: {{apiVersion: v1, kind: Box}}\n  endpoint: {{url: 'http://a/'}}\n  related: [{{name: a, apiVersion: v1, kind: Thing{more}}}]\n"
        );
        world.push(&[("h.yaml", &hook)], &[]).err()
    };
    assert_eq!(refused(", field: spec.a"), None);
    assert_eq!(refused(", selector: {}"), None);
    assert_eq!(refused(", labelFields: {a: metadata.name}"), None);
    for more in ["", ", field: spec.a, selector: {}"] {
        let message = refused(more).unwrap();
        assert!(message.contains("either by field, or by selector and labelFields"), "{message}");
    }
}

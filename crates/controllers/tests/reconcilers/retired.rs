//! Hooks that are removed or changed: nothing of them stays behind.

use axum::http::StatusCode;
use serde_json::{Value, json};
use tidegate_controllers::hooks::HookOptions;

use crate::hooks::{Behaviour, Server, widget, world};
use crate::plane::moment;
use crate::world::{World, condition};

const CONDITION: &str = "hook.tidegate.dev/sizes";

fn shows(world: &World, widget: &str, kind: &str) -> bool {
    world.get("Widget", widget).is_some_and(|widget| !condition(&widget, kind).is_null())
}

fn rows_of_hooks(world: &World) -> Vec<(String, String)> {
    let is_hooks = |(controller, name): &&(String, String)| {
        controller.starts_with("hook.") || (controller == "hooks" && name.starts_with("note/"))
    };
    world.state().rows.keys().filter(is_hooks).cloned().collect()
}

async fn until_nothing_is_left(world: &World) {
    let gone = async {
        while !rows_of_hooks(world).is_empty() {
            moment().await;
        }
    };
    if tokio::time::timeout(crate::world::PATIENCE, gone).await.is_err() {
        panic!("rows are left: {:#?}", rows_of_hooks(world));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_hook_takes_its_conditions_along() {
    let server = Server::start().await;
    let world = world(&server, "");
    let running = world.manage(HookOptions::default());
    world.until("the widget shows it", |world| shows(world, "w", CONDITION)).await;
    world.push(&[], &["hook.yaml"]).unwrap();
    world.until("the widget shows it no more", |world| !shows(world, "w", CONDITION)).await;
    assert_eq!(world.get("Widget", "w").unwrap()["status"]["size"], 1, "what the endpoint said stays");
    until_nothing_is_left(&world).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn its_quarantine_goes_with_it() {
    let server = Server::start().await;
    server.behave(Behaviour::Answer(StatusCode::BAD_REQUEST, "no".into()));
    let world = world(&server, "");
    let running = world.manage(HookOptions::default());
    world.until("the widget is stalled", |world| shows(world, "w", "Stalled")).await;
    world.push(&[], &["hook.yaml"]).unwrap();
    world.until("nothing is left on it", |world| !shows(world, "w", "Stalled") && !shows(world, "w", CONDITION)).await;
    until_nothing_is_left(&world).await;
    running.stop().await;
}

/// The manager dies before anything was taken away; the next one finds it all.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_is_removed_while_nobody_looks() {
    let server = Server::start().await;
    let world = world(&server, "");
    let running = world.manage(HookOptions::default());
    world.until("the widget shows it", |world| shows(world, "w", CONDITION)).await;
    running.stop().await;
    world.push(&[], &["hook.yaml"]).unwrap();
    let running = world.manage(HookOptions::default());
    world.until("the widget shows it no more", |world| !shows(world, "w", CONDITION)).await;
    until_nothing_is_left(&world).await;
    running.stop().await;
}

/// The plane fails at every write of the clean-up in turn, as if the manager
/// had died there.
#[tokio::test(flavor = "multi_thread")]
async fn a_clean_up_that_breaks_off_goes_on() {
    let server = Server::start().await;
    for at in 0..6 {
        let world = world(&server, "");
        world.apply("v.yaml", &widget("v", 2));
        let running = world.manage(HookOptions::default());
        world.until("both show it", |world| shows(world, "w", CONDITION) && shows(world, "v", CONDITION)).await;
        running.stop().await;
        world.push(&[], &["hook.yaml"]).unwrap();
        world.break_off_after(at);
        let running = world.manage(HookOptions::default());
        world.until("it broke off", |world| world.is_broken_off() || rows_of_hooks(world).is_empty()).await;
        running.abort().await;
        world.state().fuse = None;
        let running = world.manage(HookOptions::default());
        until_nothing_is_left(&world).await;
        assert!(!shows(&world, "w", CONDITION) && !shows(&world, "v", CONDITION), "broken off at write {at}");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_turns_to_another_kind_leaves_the_first() {
    let server = Server::start().await;
    let world = world(&server, "");
    let running = world.manage(HookOptions::default());
    world.until("the widget shows it", |world| shows(world, "w", CONDITION)).await;
    let other = server.hook("").replace("example.com/v1, kind: Widget", "catalog.gitstore.dev/v1beta1, kind: Product");
    server.behave(Behaviour::Answer(StatusCode::OK, json!({}).to_string()));
    world.apply("hook.yaml", &other);
    world.until("the widget shows it no more", |world| !shows(world, "w", CONDITION)).await;
    let is_on_product = |world: &World| condition(&world.get("Product", "lamp").unwrap(), CONDITION) != &Value::Null;
    world.until("the product does", is_on_product).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_not_selected_any_more_shows_nothing() {
    let server = Server::start().await;
    let world = world(&server, "");
    let running = world.manage(HookOptions::default());
    world.until("the widget shows it", |world| shows(world, "w", CONDITION)).await;
    world.apply("hook.yaml", &server.hook("  selector: {matchLabels: {a: b}}\n"));
    world.until("the widget shows it no more", |world| !shows(world, "w", CONDITION)).await;
    running.stop().await;
}

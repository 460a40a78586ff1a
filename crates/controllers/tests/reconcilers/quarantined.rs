//! Several controllers of one kind, and the one condition `Stalled`.

use axum::http::StatusCode;
use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_controllers::hooks::HookOptions;

use crate::hooks::{Behaviour, Server, world};
use crate::world::{World, condition};

/// The controller that the widget names.
fn shown(world: &World) -> Option<String> {
    let widget = world.get("Widget", "w").unwrap();
    let stalled = condition(&widget, "Stalled");
    stalled["message"].as_str()?.split_once(": ").map(|(controller, _)| controller.to_owned())
}

fn quarantined(world: &World) -> Vec<String> {
    let is_parked = |row: &Bytes| serde_json::from_slice::<Value>(row).unwrap().get("dueMs").is_none();
    let state = world.state();
    let rows = state.rows.iter().filter(|((_, name), row)| name == "unfinished/shop w" && is_parked(row));
    rows.map(|((controller, _), _)| controller.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_shown_while_any_is_left() {
    let never = json!({"error": {"message": "never", "retryable": false}}).to_string();
    let (sizes, colors) = (Server::start().await, Server::start().await);
    for server in [&sizes, &colors] {
        server.behave(Behaviour::Answer(StatusCode::OK, never.clone()));
    }
    let world = world(&sizes, "");
    world.apply("colors.yaml", &colors.hook("").replace("name: sizes", "name: colors"));
    let running = world.manage(HookOptions::default());
    world.until("both give up", |world| quarantined(world).len() == 2).await;
    world.until("one of them is named", |world| shown(world).is_some()).await;

    let first = shown(&world).unwrap();
    let other = quarantined(&world).into_iter().find(|controller| *controller != first).unwrap();
    for (mended, left) in [(first, Some(other.clone())), (other, None)] {
        let server = if mended.starts_with("hook.sizes.") { &sizes } else { &colors };
        server.behave(Behaviour::Fine);
        world.state().rows.insert((mended.clone(), "release/*".into()), Bytes::new());
        world.until(&format!("without {mended}, it names {left:?}"), |world| shown(world) == left).await;
    }
    assert_eq!(quarantined(&world), [] as [String; 0]);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_goes_takes_nothing_of_the_others() {
    let never = json!({"error": {"message": "never", "retryable": false}}).to_string();
    let server = Server::start().await;
    server.behave(Behaviour::Answer(StatusCode::OK, never));
    let world = world(&server, "");
    world.apply("colors.yaml", &server.hook("").replace("name: sizes", "name: colors"));
    let running = world.manage(HookOptions::default());
    world.until("both give up", |world| quarantined(world).len() == 2).await;
    world.until("one of them is named", |world| shown(world).is_some()).await;
    let (gone, left) = if shown(&world).unwrap().starts_with("hook.sizes.") {
        ("hook.yaml", "hook.colors.")
    } else {
        ("colors.yaml", "hook.sizes.")
    };
    world.push(&[], &[gone]).unwrap();
    world
        .until("the other one is named", |world| shown(world).is_some_and(|controller| controller.starts_with(left)))
        .await;
    running.stop().await;
}

//! A namespace comes, is emptied, and goes.

use tidegate_controllers::hooks::HookOptions;
use tidegate_controllers::namespaces::CONTENTS_FINALIZER;

use crate::world::{World, condition};

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
const FILE: &str = "apiVersion: catalog.gitstore.dev/v1beta1\nkind: File\nmetadata: {name: f, namespace: shop}\nspec: {source: {uri: 'a:b'}}\n";

#[test]
fn admission_and_the_controller_agree_on_the_finalizer() {
    assert_eq!(CONTENTS_FINALIZER, tidegate_admission::CONTENTS_FINALIZER);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_terminates_when_it_is_empty() {
    let world = World::new();
    world.push(&[("ns.yaml", NAMESPACE), ("f.yaml", FILE)], &[]).unwrap();
    let running = world.manage(HookOptions::default());
    world.until_ready("Namespace", "shop", "Ready").await;
    assert_eq!(world.get("Namespace", "shop").unwrap()["status"]["phase"], "Active");

    world.push(&[], &["ns.yaml"]).unwrap();
    world.until_ready("Namespace", "shop", "Terminating").await;
    let shop = world.get("Namespace", "shop").unwrap();
    assert_eq!(shop["status"]["phase"], "Terminating");
    assert_eq!(condition(&shop, "Reconciling")["status"], "True");
    assert!(condition(&shop, "Ready")["message"].as_str().unwrap().contains("1 objects are left"));
    let refused = world.push(&[("g.yaml", &FILE.replace("name: f", "name: g"))], &[]).unwrap_err();
    assert!(refused.contains("takes nothing new"), "{refused}");

    world.push(&[], &["f.yaml"]).unwrap();
    world.until_ready("Namespace", "shop", "gone").await;
    world.push(&[("ns.yaml", NAMESPACE)], &[]).unwrap();
    world.until_ready("Namespace", "shop", "Ready").await;
    running.stop().await;
}

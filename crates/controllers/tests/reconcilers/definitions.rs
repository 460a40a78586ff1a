//! A definition says that it is established.

use serde_json::json;
use tidegate_controllers::hooks::HookOptions;

use crate::world::{World, condition};

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_established() {
    let world = World::new();
    world.apply("crd.yaml", crate::hooks::WIDGETS);
    let running = world.manage(HookOptions::default());
    let name = "widgets.example.com";
    world.until_ready("CustomResourceDefinition", name, "Ready").await;
    let crd = world.get("CustomResourceDefinition", name).unwrap();
    for kind in ["NamesAccepted", "Established"] {
        assert_eq!(condition(&crd, kind)["status"], "True", "{kind}");
    }
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(crd["status"]["acceptedNames"]["listKind"], "WidgetList");
    running.stop().await;
}

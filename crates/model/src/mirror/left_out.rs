//! Objects that controllers make and nobody wrote.

use serde_json::Value;

use crate::Object;

/// Published into every namespace by the controller manager.
const ROOT_CA_NAME: &str = "kube-root-ca.crt";
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";

/// Why an object is not mirrored unless it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeftOut {
    RootCa,
    ServiceAccountToken,
    /// Its owner is mirrored; the controller makes it again.
    ControllerOwned,
}

/// Takes the object as the cluster has it: sanitizing removes the owners.
pub fn left_out(object: &Object) -> Option<LeftOut> {
    let is_core = |kind| object.api_version() == "v1" && object.kind() == kind;
    let is_type = |text| object.root().get("type").and_then(Value::as_str) == Some(text);
    if is_core("ConfigMap") && object.name() == ROOT_CA_NAME {
        Some(LeftOut::RootCa)
    } else if is_core("Secret") && is_type(TOKEN_TYPE) {
        Some(LeftOut::ServiceAccountToken)
    } else {
        has_controller(object).then_some(LeftOut::ControllerOwned)
    }
}

fn has_controller(object: &Object) -> bool {
    let owners = object.metadata().get("ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| owner.get("controller") == Some(&Value::Bool(true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str, expected: Option<LeftOut>) {
        let object = Object::from_value(crate::yaml::parse(yaml).unwrap()).unwrap();
        assert_eq!(left_out(&object), expected, "{yaml}");
    }

    #[test]
    fn what_controllers_make() {
        check("{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}", Some(LeftOut::RootCa));
        check("{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}", None);
        check("{apiVersion: a/v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}", None);
        let secret = |kind| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, type: {kind}}}");
        check(&secret("kubernetes.io/service-account-token"), Some(LeftOut::ServiceAccountToken));
        check(&secret("Opaque"), None);
        let owned = |owner| format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a, ownerReferences: [{owner}]}}}}");
        check(&owned("{name: b, controller: true}"), Some(LeftOut::ControllerOwned));
        check(&owned("{name: b, controller: false}, {name: c}"), None);
        check(&owned("{name: b}, {name: c, controller: true}"), Some(LeftOut::ControllerOwned));
    }
}

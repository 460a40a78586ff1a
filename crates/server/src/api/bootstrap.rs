//! What a new store holds before anybody has written to it.

use chrono::Utc;
use serde_json::{Value, json};
use tidegate_model::{EncodedObject, GroupResource, Object, ObjectKey};
use tidegate_store::{CommitError, Expect, Op, Rebased, Transaction, Write};
use uuid::Uuid;

use super::Api;

/// The account that controllers act as, in process and by default elsewhere:
/// namespace and name.
pub const CONTROLLER_MANAGER: (&str, &str) = ("system", "controller-manager");
const CONTROLLER_ROLE: &str = "system:controller-manager";

/// `system` is the server's own; `default` is for whoever names none.
pub const NAMESPACES: [&str; 2] = ["system", "default"];

impl Api {
    /// Does nothing where they are there already. When it returns, they are in
    /// force: controllers begin by asking what they may.
    pub async fn bootstrap(&self) -> Result<(), CommitError> {
        let mut writes: Vec<Write> = NAMESPACES.iter().map(|name| create_namespace(name)).collect();
        writes.push(create_control());
        writes.extend(controller_manager());
        let keys: Vec<ObjectKey> = writes.iter().map(|write| write.key.clone()).collect();
        let committed = self.0.store.commit(Transaction { writes, marks: Vec::new() }).await?;
        self.in_force(&keys, &committed).await;
        Ok(())
    }
}

fn create_namespace(name: &str) -> Write {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata(name),
        "status": {"phase": "Active"},
    });
    create(ObjectKey::new(GroupResource::new("", "namespaces"), None, name), object)
}

/// The repository by which everything else comes, its own object included.
fn create_control() -> Write {
    let (namespace, name) = ("system", "control");
    let mut metadata = metadata(name);
    metadata["namespace"] = namespace.into();
    let object = json!({
        "apiVersion": "tidegate.dev/v1",
        "kind": "Repository",
        "metadata": metadata,
        "spec": {"branch": "main", "namespaces": ["*"], "allowClusterScoped": true, "allowForce": false},
    });
    create(ObjectKey::new(GroupResource::new("tidegate.dev", "repositories"), Some(namespace), name), object)
}

/// What controllers may do, by the same rules as everybody: read everything,
/// write status and finalizers, keep their lease and their own state.
fn controller_manager() -> [Write; 3] {
    let (namespace, name) = CONTROLLER_MANAGER;
    let rbac = |plural| ObjectKey::new(GroupResource::new(RBAC, plural), None, CONTROLLER_ROLE);
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let mut account = metadata(name);
    account["namespace"] = namespace.into();
    [
        keep(
            ObjectKey::new(GroupResource::new("", "serviceaccounts"), Some(namespace), name),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}),
        ),
        keep(
            rbac("clusterroles"),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": metadata(CONTROLLER_ROLE),
            "rules": [
                rule(&["*"], &["*"], &["get", "list", "watch"]),
                rule(&["*"], &["*/status", "*/finalizers"], &["patch"]),
                rule(&["coordination.k8s.io"], &["leases"], &["patch"]),
                rule(&["tidegate.dev"], &["controllerstates"], &["get", "patch"]),
                rule(&["tidegate.dev"], &["repositories"], &["sync"]),
            ]}),
        ),
        keep(
            rbac("clusterrolebindings"),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
                "metadata": metadata(CONTROLLER_ROLE),
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": CONTROLLER_ROLE},
                "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}]}),
        ),
    ]
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// Creates it, and brings it up to what this version of the program says,
/// unless a repository has taken it over.
fn keep(key: ObjectKey, wanted: Value) -> Write {
    let mut write = create(key, wanted.clone());
    write.rebase = Some(std::sync::Arc::new(move |current| {
        let current = current.and_then(|stored| Object::from_json(&stored.json));
        match current.and_then(|current| kept(current, &wanted)) {
            Some(next) => Rebased::Op(Op::Put(EncodedObject::new(&next))),
            None => Rebased::Skip,
        }
    }));
    write
}

/// `None` if it stays as it is.
fn kept(mut current: Object, wanted: &Value) -> Option<Object> {
    if current.metadata().contains_key("annotations") {
        return None;
    }
    let before = current.clone();
    for field in ["rules", "roleRef", "subjects"] {
        if let Some(value) = wanted.get(field) {
            current.root_mut().insert(field.into(), value.clone());
        }
    }
    (current != before).then_some(current)
}

fn metadata(name: &str) -> Value {
    let now = Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    json!({"name": name, "uid": Uuid::new_v4().to_string(), "creationTimestamp": now, "generation": 1})
}

fn create(key: ObjectKey, object: Value) -> Write {
    let object = Object::from_value(object).expect("it has an object's shape");
    Write {
        key,
        expect: Expect::Absent,
        op: Op::Put(EncodedObject::new(&object)),
        rebase: Some(std::sync::Arc::new(|_| Rebased::Skip)),
    }
}

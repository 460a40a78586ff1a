//! The control plane of the tests is a real one, and ends with them.
#![allow(clippy::unwrap_used)]

mod lifetime;

use tidegate_testkit::cluster::{ADMIN, ALICE, BOB, Cluster, Options, User, shared};

#[test]
fn everybody_is_who_they_say() {
    let cluster = shared();
    for name in [ADMIN, ALICE, BOB] {
        assert_eq!(whoami(cluster, name), name);
    }
    let token = cluster.service_account_token("default", "robot");
    let account = cluster.kubeconfig_of_token("robot", &token);
    let args =
        ["--kubeconfig", account.to_str().unwrap(), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    assert_eq!(cluster.kubectl(BOB, &args, "").unwrap(), "system:serviceaccount:default:robot");
}

#[test]
fn permissions_are_asked_for() {
    let cluster = shared();
    let namespace = cluster.namespace("permissions");
    let create = |user: &str| cluster.kubectl(user, &["create", "configmap", user, "--namespace", &namespace], "");
    let refused = create(BOB).unwrap_err();
    assert!(refused.contains("forbidden") && refused.contains("bob"), "{refused}");
    cluster.grant(ALICE, "cluster-admin");
    assert_eq!(create(ALICE).unwrap(), "configmap/alice created\n");
    assert!(create(BOB).is_err());
}

#[test]
fn it_tells_the_version_that_was_asked_for() {
    let version = shared().admin(&["get", "--raw", "/version"]);
    let version: serde_json::Value = serde_json::from_str(&version).unwrap();
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        assert_eq!(version["gitVersion"], tidegate_assets::Program::KubeApiserver.version());
    }
}

#[test]
fn controllers_run_on_request_and_users_have_groups() {
    let users = vec![User::new("carol").in_group("builders")];
    let cluster = Cluster::start(Options { users, controller_manager: true, ..Options::default() });
    let groups = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}"];
    assert!(cluster.kubectl("carol", &groups, "").unwrap().contains("\"builders\""));
    cluster.grant("carol", "edit");
    cluster.kubectl("carol", &["create", "configmap", "hers"], "").unwrap();
    // The garbage collector removes what its owner leaves behind.
    cluster.admin(&["create", "configmap", "owner"]);
    let uid = cluster.admin(&["get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}"]);
    cluster.apply(
        ADMIN,
        &format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: child\n  namespace: default\n  \
             ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}}}]\n"
        ),
    );
    cluster.admin(&["delete", "configmap", "owner"]);
    cluster.admin(&["wait", "--for=delete", "configmap/child", "--timeout=120s"]);
}

fn whoami(cluster: &Cluster, user: &str) -> String {
    cluster.kubectl(user, &["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"], "").unwrap()
}

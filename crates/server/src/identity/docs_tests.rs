//! The examples of `docs/authorization.md`, tried word for word.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_model::{GroupResource, Object, yaml};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Attributes, Identity, Policy, Verb};
use crate::server::{self, Options};

const PAGE: &str = include_str!("../../../../docs/authorization.md");

/// The fenced blocks of a language, in order.
fn blocks(section: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    section.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn policy(section: &str) -> Policy {
    let documents = blocks(section, "yaml").into_iter().flat_map(|block| yaml::parse_documents(&block).unwrap());
    let objects: Vec<Object> = documents.map(|document| Object::from_value(document.value).unwrap()).collect();
    Policy::build(objects.iter())
}

fn identity(user: &str) -> Identity {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:").unwrap().split_once(':').unwrap();
    Identity::service_account(namespace, name)
}

/// `verb resource place`; a place is `-`, `namespace` or `namespace/name`.
fn allows(policy: &Policy, identity: &Identity, verb: &str, resource: &str, place: &str) -> bool {
    if resource.starts_with('/') {
        return policy.allows_url(identity, verb, resource);
    }
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let (plural, subresource) = resource.split_once('/').map_or((resource, None), |(plural, sub)| (plural, Some(sub)));
    let (namespace, name) = place.split_once('/').map_or((place, None), |(namespace, name)| (namespace, Some(name)));
    let verb = Verb::ALL.into_iter().find(|known| known.as_str() == verb).unwrap();
    let mut asked = Attributes::new(verb, &GroupResource::new(group, plural)).namespace(Some(namespace));
    asked.subresource =
        subresource.map(|sub| ["status", "finalizers", "token"].into_iter().find(|s| *s == sub).unwrap());
    asked.namespace = asked.namespace.filter(|namespace| &**namespace != "-");
    asked.name = name.map(Into::into);
    policy.allows(identity, &asked)
}

/// How many questions the section's tables ask.
fn check(section: &str) -> usize {
    let (policy, mut caller, mut asked) = (policy(section), Identity::admin(), 0);
    assert_eq!(policy.problems().count(), 0);
    for line in blocks(section, "text").iter().flat_map(|block| block.lines()) {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [user] => caller = identity(user),
            [answer, verb, resource, place] => {
                let expected = answer == "yes";
                assert_eq!(allows(&policy, &caller, verb, resource, place), expected, "{} {line}", caller.user);
                asked += 1;
            }
            _ => panic!("{line}"),
        }
    }
    asked
}

#[test]
fn the_tables_are_what_the_server_answers() {
    let asked: usize = PAGE.split("\n## ").map(check).sum();
    assert!(asked > 15, "the tables were found");
}

/// A server that has admitted all YAML of the page.
async fn start(directory: &TempDir) -> server::Server {
    let folder = directory.path().join("manifests");
    std::fs::create_dir(&folder).unwrap();
    let namespace = |name: &str| format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
    let documents = [vec![namespace("shop"), namespace("monitoring")], blocks(PAGE, "yaml")].concat();
    std::fs::write(folder.join("page.yaml"), documents.join("---\n")).unwrap();
    let repos = crate::repos::Options::new(std::env::var_os("PATH").unwrap());
    let options =
        Options { manifests: Some(folder), ..Options::on_loopback(directory.path().join("tidegate-data"), repos) };
    server::start(options).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn post(address: SocketAddr, token: &str, body: &str) -> Value {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /graphql HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_work_on_the_objects_of_the_page() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory).await;
    let address = server.url().strip_prefix("http://").unwrap().parse().unwrap();
    let admin = std::fs::read_to_string(server.admin_token_path()).unwrap();
    let (shutdown, task) = (server.shutdown(), tokio::spawn(server.run()));

    let commands = blocks(PAGE, "sh");
    let bodies = commands.iter().filter_map(|command| Some(command.split_once("-d '")?.1.trim_end_matches("'\n")));
    let bodies: Vec<&str> = bodies.collect();
    let [whoami, create, revoke] = bodies[..] else { panic!("{bodies:?}") };
    let as_admin = post(address, admin.trim(), whoami).await;
    assert_eq!(as_admin["data"]["whoami"]["user"], "system:admin");
    let created = post(address, admin.trim(), create).await["data"]["createToken"].clone();
    let token = created["token"].as_str().unwrap();
    let as_bot = post(address, token, whoami).await;
    assert_eq!(as_bot["data"]["whoami"]["user"], "system:serviceaccount:shop:price-bot");
    let revoke = revoke.replace("<id>", created["id"].as_str().unwrap());
    assert_eq!(post(address, admin.trim(), &revoke).await, json!({"data": {"revokeToken": true}}));
    let refused = post(address, token, whoami).await;
    assert_eq!(refused["errors"][0]["extensions"]["code"], "UNAUTHENTICATED");

    shutdown.drain();
    task.await.unwrap();
}

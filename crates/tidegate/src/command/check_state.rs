//! What a check takes for granted: no stored objects but namespaces, which are
//! those of a first start or of a server that was asked.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use tidegate_admission::State;
use tidegate_client::Client;
use tidegate_model::kinds::KindSet;
use tidegate_model::{GroupResource, Object, ObjectKey};
use tidegate_server::api::{CrdKinds, NAMESPACES};

use crate::cli::ConnectionArgs;
use crate::client::connect;
use crate::client::kinds::{self, KindInfo};
use crate::client::list::{self, Selection, Sink};

pub struct Assumed {
    pub kinds: KindSet,
    namespaces: HashMap<String, Arc<Object>>,
}

impl Assumed {
    /// `own` is the namespace of the repository, which exists if it does.
    pub fn first_start(own: &str) -> Self {
        let names = NAMESPACES.into_iter().chain([own]).map(|name| json!({"name": name}));
        Self { kinds: KindSet::builtin(), namespaces: names.filter_map(namespace).collect() }
    }

    pub async fn of_server(connection: &ConnectionArgs) -> Result<Self> {
        let client = connect(connection)?;
        let known = kinds::fetch(&client).await?;
        let mut definitions = CrdKinds::default();
        for crd in all(&client, &known, "customresourcedefinitions.apiextensions.k8s.io").await? {
            if let Some(crd) = Object::from_value(crd) {
                definitions.apply(crd.name(), Some(&crd));
            }
        }
        let namespaces = all(&client, &known, "namespaces").await?;
        let namespaces = namespaces.into_iter().filter_map(|mut object| namespace(object["metadata"].take()));
        Ok(Self { kinds: definitions.in_force().set, namespaces: namespaces.collect() })
    }
}

/// By its name. Only what admission asks of a namespace stays: whose it is
/// would make a definition in the tree a second one.
fn namespace(metadata: Value) -> Option<(String, Arc<Object>)> {
    let asked = ["name", "deletionTimestamp", "finalizers"];
    let kept = asked.into_iter().filter_map(|field| Some((field.to_owned(), metadata.get(field)?.clone())));
    let metadata: serde_json::Map<_, _> = kept.collect();
    let object = Object::from_value(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))?;
    Some((object.name().to_owned(), Arc::new(object)))
}

async fn all(client: &Client, known: &[KindInfo], word: &str) -> Result<Vec<Value>> {
    let kind = kinds::resolve(known, word)?;
    let mut collected = Collected::default();
    list::run(client, &Selection { kind, namespace: None, labels: None, fields: None }, None, &mut collected).await?;
    Ok(collected.0)
}

#[derive(Default)]
struct Collected(Vec<Value>);

impl Sink for Collected {
    fn page(&mut self, _: &str, objects: Vec<Value>) -> Result<()> {
        self.0.extend(objects);
        Ok(())
    }

    fn restart(&mut self) -> Result<()> {
        self.0.clear();
        Ok(())
    }
}

impl State for Assumed {
    type Error = Infallible;

    fn current(&self, key: &ObjectKey) -> Result<Option<Arc<Object>>, Infallible> {
        let is_namespace = key.resource == GroupResource::new("", "namespaces");
        Ok(self.namespaces.get(&*key.name).filter(|_| is_namespace).cloned())
    }

    fn defined_at(&self, _: &str) -> Result<Vec<ObjectKey>, Infallible> {
        Ok(Vec::new())
    }

    fn count(&self, _: &GroupResource, _: Option<&str>) -> Result<u64, Infallible> {
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_alone_are_there() {
        let state = Assumed::first_start("shop");
        let has = |plural: &str, name: &str| {
            let Ok(found) = state.current(&ObjectKey::new(GroupResource::new("", plural), None, name));
            found.is_some()
        };
        assert!(has("namespaces", "default") && has("namespaces", "system") && has("namespaces", "shop"));
        assert!(!has("namespaces", "other") && !has("serviceaccounts", "default"));
    }

    #[test]
    fn a_servers_namespace_is_nobodys() {
        let annotations = json!({"tidegate.dev/source-repository": "system/control"});
        let metadata = json!({"name": "shop", "deletionTimestamp": "now", "annotations": annotations});
        let (name, object) = namespace(metadata).unwrap();
        assert_eq!((name.as_str(), object.deletion_timestamp()), ("shop", Some("now")));
        assert!(!object.metadata().contains_key("annotations"));
    }
}

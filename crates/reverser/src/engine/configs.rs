//! The configuration's own watches.

use serde_json::Value;
use tokio::sync::mpsc;

use super::state::Msg;
use crate::claims::TypeId;
use crate::cluster::{Api, ApiError, Consumer, Cue, Follow, collection, follow};
use crate::config::{ConfigKind, GROUP, Id, VERSION, id_of};

pub(super) enum ConfigTold {
    All(Vec<Value>),
    Put(Value),
    Gone(Id),
}

pub(super) async fn watch_config(api: Api, kind: ConfigKind, cue: Cue, to: mpsc::Sender<Msg>) {
    let path = collection(&TypeId::new(GROUP, VERSION, kind.plural()), None);
    let mut watch = ConfigWatch { kind, to, list: Vec::new() };
    follow(Follow { api, path, cue }, &mut watch).await;
}

struct ConfigWatch {
    kind: ConfigKind,
    to: mpsc::Sender<Msg>,
    list: Vec<Value>,
}

impl ConfigWatch {
    async fn tell(&self, told: ConfigTold) {
        let _ = self.to.send(Msg::Config(self.kind, told)).await;
    }
}

impl Consumer for ConfigWatch {
    fn restart(&mut self) {
        self.list.clear();
    }

    async fn listed(&mut self, object: Value) {
        self.list.push(object);
    }

    async fn complete(&mut self) {
        let list = std::mem::take(&mut self.list);
        self.tell(ConfigTold::All(list)).await;
    }

    async fn changed(&mut self, object: Value) {
        self.tell(ConfigTold::Put(object)).await;
    }

    async fn gone(&mut self, object: Value) {
        self.tell(ConfigTold::Gone(id_of(&object))).await;
    }

    async fn failed(&mut self, error: &ApiError) {
        if error.is_not_found() {
            let kind = self.kind.name();
            tracing::error!(kind, "is not defined here: run `tidegate reverse install --print | kubectl apply -f -`");
        }
    }

    async fn recovered(&mut self) {}
}

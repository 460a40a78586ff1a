//! Who brings a repository up to date for its controller: the server, in this
//! process or another.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;
use tidegate_client::RemotePlane;
use tidegate_controllers::repository::{Outcome, Repositories};
use tidegate_runtime::ApiError;
use tidegate_server::api::{Api, CONTROLLER_MANAGER, SyncOutcome};
use tidegate_server::identity::{Identity, Session};

/// The server of this process.
pub struct LocalRepositories {
    api: Api,
    session: Session,
}

impl LocalRepositories {
    /// As the controllers' own account.
    pub fn new(api: Api) -> Self {
        let (namespace, name) = CONTROLLER_MANAGER;
        Self { api, session: Session::internal(Identity::service_account(namespace, name)) }
    }
}

#[async_trait]
impl Repositories for LocalRepositories {
    async fn sync(&self, namespace: &str, name: &str) -> Result<Outcome, ApiError> {
        Ok(outcome(self.api.sync_repository(&self.session, namespace, name).await?))
    }
}

fn outcome(outcome: SyncOutcome) -> Outcome {
    let (reason, message) = (outcome.reason().to_owned(), outcome.message());
    let nothing =
        Outcome { in_force: false, reason, message, problems: Vec::new(), commit: None, objects: None, files: None };
    match outcome {
        SyncOutcome::InForce(synced) => {
            Outcome { in_force: true, commit: synced.commit, objects: synced.objects, files: synced.files, ..nothing }
        }
        SyncOutcome::Refused { commit, problems } => Outcome { commit, problems, ..nothing },
        SyncOutcome::Failed { .. } => nothing,
    }
}

const SYNC: &str = "mutation($namespace: String!, $name: String!) { syncRepository(namespace: $namespace, name: $name) \
                    { inForce reason message problems commit objects files } }";

/// A server elsewhere. Its client waits as long as a fetch may take.
pub struct RemoteRepositories(pub RemotePlane);

#[async_trait]
impl Repositories for RemoteRepositories {
    async fn sync(&self, namespace: &str, name: &str) -> Result<Outcome, ApiError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Data {
            sync_repository: Outcome,
        }
        let data: Data = self.0.ask(SYNC, json!({"namespace": namespace, "name": name})).await?;
        Ok(data.sync_repository)
    }
}

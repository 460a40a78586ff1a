//! Who we are to the API server.

use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::api::Api;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("failed to read the kubeconfig {}", path.display())]
    Kubeconfig { path: PathBuf, source: kube::config::KubeconfigError },
    #[error("neither a pod's service account nor a kubeconfig was found: give --kubeconfig")]
    Infer(#[source] kube::config::InferConfigError),
    #[error("failed to prepare the connection to the API server")]
    Client(#[source] kube::Error),
}

/// `kubeconfig`, else what the pod or the user's home has.
pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Api, ConnectError> {
    let config = match kubeconfig {
        Some(path) => {
            let failed = |source| ConnectError::Kubeconfig { path: path.to_owned(), source };
            let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
            let options = KubeConfigOptions { context: context.map(Into::into), ..Default::default() };
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)?
        }
        None => Config::infer().await.map_err(ConnectError::Infer)?,
    };
    Ok(Api::new(Client::try_from(config).map_err(ConnectError::Client)?))
}

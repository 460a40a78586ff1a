//! Who we are to the API server.

use std::path::{Path, PathBuf};

use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::api::Api;
use super::obstacle::Access;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    // A text and not a source, as it tells its own cause already.
    #[error("failed to read the kubeconfig {}: {reason}", path.display())]
    Kubeconfig { path: PathBuf, reason: String },
    #[error(
        "there is neither a kubeconfig ({reason}) nor the service account of a pod: give --kubeconfig FILE, or set KUBECONFIG"
    )]
    Infer { reason: String },
    #[error("failed to use the context {context} of the kubeconfig: {reason}")]
    Context { context: String, reason: String },
    #[error("failed to prepare the connection to the API server")]
    Client(#[source] kube::Error),
}

/// `kubeconfig`, else `KUBECONFIG`, else the one in the user's home, else the
/// service account of the pod, which has no contexts.
pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Api, ConnectError> {
    let options = KubeConfigOptions { context: context.map(Into::into), ..Default::default() };
    let mut user = None;
    let mut config = match (kubeconfig, context) {
        (Some(path), _) => {
            let failed = |error| ConnectError::Kubeconfig { path: path.to_owned(), reason: without_path(&error) };
            let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
            user = user_of(&kubeconfig, context);
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)?
        }
        // Never another cluster than the one that was named.
        (None, Some(context)) => Config::from_kubeconfig(&options)
            .await
            .map_err(|error| ConnectError::Context { context: context.to_owned(), reason: error.to_string() })?,
        (None, None) => Config::infer().await.map_err(|error| ConnectError::Infer { reason: with_path(&error) })?,
    };
    // Whoever asks has a backoff of their own, and is to know what was said.
    config.default_retry = false;
    let (address, access) = (config.cluster_url.to_string(), access(&config));
    if kubeconfig.is_none() && access != Access::Pod {
        user = Kubeconfig::read().ok().and_then(|kubeconfig| user_of(&kubeconfig, context));
    }
    Ok(Api::new(Client::try_from(config).map_err(ConnectError::Client)?, address, access).of_user(user))
}

fn user_of(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let named = kubeconfig.contexts.iter().find(|named| named.name == name)?;
    named.context.as_ref()?.user.clone()
}

fn access(config: &Config) -> Access {
    let auth = &config.auth_info;
    match &config.root_cert_file {
        Some(_) => Access::Pod,
        None if auth.exec.is_some() || auth.auth_provider.is_some() => Access::Renewed,
        // A token goes before a file.
        None if auth.token.is_none() && auth.token_file.is_some() => Access::Renewed,
        None => Access::Fixed,
    }
}

fn without_path(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(reason, _) => reason.to_string(),
        other => other.to_string(),
    }
}

/// Of the kubeconfig, which somebody may have meant; a pod has its account.
fn with_path(error: &InferConfigError) -> String {
    match std::error::Error::source(error).and_then(|source| source.downcast_ref()) {
        Some(KubeconfigError::ReadConfig(reason, path)) => format!("{}: {reason}", path.display()),
        Some(other) => other.to_string(),
        None => error.to_string(),
    }
}

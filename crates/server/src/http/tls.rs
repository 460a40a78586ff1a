//! The certificate in force, read again at SIGHUP and when its files change.

use std::sync::Arc;

use tidegate_tls::Certificates;
pub use tidegate_tls::{CertificateError as TlsError, CertificateFiles as TlsFiles};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use super::shutdown::Shutdown;

/// Until the drain.
pub(super) async fn keep_fresh(certificates: Arc<Certificates>, shutdown: Shutdown) {
    let asked = Notify::new();
    tokio::select! {
        () = shutdown.started() => {}
        () = certificates.keep_fresh(&asked) => {}
        () = ask_at_hangup(&asked) => {}
    }
}

async fn ask_at_hangup(asked: &Notify) {
    match signal(SignalKind::hangup()) {
        Ok(mut hangup) => {
            while hangup.recv().await.is_some() {
                asked.notify_one();
            }
        }
        Err(error) => tracing::error!(%error, "SIGHUP cannot be heard: certificates are reloaded when files change"),
    }
    std::future::pending().await
}

//! What keeps us from the API server, told to people: the place, the reason
//! and the remedy.
//!
//! Invariant: waiting for it ends only where nothing but another start can help,
//! because what is wrong was read at the start and is not read again.

use std::error::Error;
use std::fmt;
use std::io;

use http::StatusCode;
use tokio_rustls::rustls;

use super::api::{Api, ApiError};

/// Where our credentials are from, and what of them is read again while we run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// A kubeconfig, as it was at the start.
    Fixed,
    /// A kubeconfig that names a file or a program for its token.
    Renewed,
    /// The service account of a pod: its token and its CA are files that are
    /// read again.
    Pod,
}

impl Access {
    fn place(self) -> &'static str {
        match self {
            Self::Fixed | Self::Renewed => "the kubeconfig",
            Self::Pod => "the service account of the pod",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Obstacle {
    pub kind: ObstacleKind,
    pub healing: Healing,
    text: String,
}

/// Whether waiting is of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Healing {
    /// It may heal at any time.
    Possible,
    /// Good credentials are refused for a moment, too, by a server that starts
    /// and by one whose authenticator is away. What is refused for longer is
    /// not good.
    Soon,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObstacleKind {
    NoAnswer,
    UnknownHost,
    /// Its certificate is of nobody whom we trust.
    Untrusted,
    /// Its certificate is good at another time.
    Untimely,
    Unauthorized,
    Forbidden,
    /// It answers, and cannot do more yet.
    NotReady,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Obstacle {}

impl Obstacle {
    pub fn new(api: &Api, error: &ApiError) -> Self {
        let (kind, access) = (ObstacleKind::of(error), api.access());
        let reason = error.no_answer().unwrap_or_else(|| error.to_string());
        let (address, place) = (api.address(), access.place());
        let whose = api.user().map_or_else(|| place.to_owned(), |user| format!("the user {user} in {place}"));
        let text = match kind {
            ObstacleKind::NoAnswer => format!(
                "cannot reach the API server {address}: {reason}: check that it runs, and that {place} has the right address"
            ),
            ObstacleKind::UnknownHost => format!(
                "the host of the API server {address} is not known: {reason}: check the address in {place}, and the DNS of this machine"
            ),
            ObstacleKind::Untrusted => format!(
                "the certificate of the API server {address} is not trusted: {reason}: correct the address or the certificate-authority in {place}"
            ),
            ObstacleKind::Untimely => format!(
                "the certificate of the API server {address} is not valid now: {reason}: renew it, or set the clock of this machine"
            ),
            ObstacleKind::Unauthorized => format!(
                "the API server {address} does not accept the credentials of {whose}: {reason}: renew them there, or choose others"
            ),
            ObstacleKind::Forbidden => format!(
                "the API server {address} does not allow what the operator needs: {reason}: apply what `tidegate reverse install --print` writes, or bind its ClusterRole and its Role to this user"
            ),
            ObstacleKind::NotReady => format!("the API server {address} is not ready: {reason}"),
        };
        Self { kind, healing: kind.healing(access), text }
    }
}

impl ObstacleKind {
    fn of(error: &ApiError) -> Self {
        match error {
            ApiError::Refused { status: StatusCode::UNAUTHORIZED, .. } => Self::Unauthorized,
            ApiError::Refused { status: StatusCode::FORBIDDEN, .. } => Self::Forbidden,
            ApiError::Refused { .. } | ApiError::TooLarge { .. } => Self::NotReady,
            ApiError::Failed { source, .. } => of_failure(source.as_ref()),
        }
    }

    fn healing(self, access: Access) -> Healing {
        match (self, access) {
            (Self::Unauthorized, Access::Fixed) => Healing::Soon,
            (Self::Untrusted, Access::Fixed | Access::Renewed) => Healing::Never,
            // Servers start, names become known, certificates are renewed and
            // rights are given while we run.
            _ => Healing::Possible,
        }
    }
}

fn of_failure(error: &(dyn Error + 'static)) -> ObstacleKind {
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let tls = causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>());
    match tls {
        Some(rustls::Error::InvalidCertificate(
            Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
        )) => ObstacleKind::Untimely,
        Some(rustls::Error::InvalidCertificate(_)) => ObstacleKind::Untrusted,
        // The HTTP client names the step, and has no type for it.
        _ if causes(error).any(|cause| cause.to_string() == "dns error") => ObstacleKind::UnknownHost,
        _ => ObstacleKind::NoAnswer,
    }
}

/// With what an `io::Error` wraps, which leaves itself out of its sources.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped.map(|wrapped| wrapped as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn refused(status: u16) -> ApiError {
        let status = StatusCode::from_u16(status).unwrap();
        ApiError::Refused { method: Method::GET, path: "/x".into(), status, message: "said".into() }
    }

    fn tls(error: rustls::CertificateError) -> ApiError {
        // As it comes from under the HTTP client.
        let error = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::InvalidCertificate(error));
        ApiError::failed(&Method::GET, "/x", io::Error::other(error))
    }

    fn plain(error: &str) -> ApiError {
        ApiError::failed(&Method::GET, "/x", error)
    }

    #[test]
    fn only_what_is_read_once_is_not_waited_for() {
        use Access::{Fixed, Pod, Renewed};
        use ObstacleKind::{Forbidden, NoAnswer, NotReady, Unauthorized, UnknownHost, Untimely, Untrusted};
        let (unknown, expired) = (rustls::CertificateError::UnknownIssuer, rustls::CertificateError::Expired);
        let always = [Healing::Possible; 3];
        for (error, kind, healing) in [
            (refused(401), Unauthorized, [Healing::Soon, Healing::Possible, Healing::Possible]),
            (refused(403), Forbidden, always),
            (refused(404), NotReady, always),
            (refused(503), NotReady, always),
            (tls(unknown), Untrusted, [Healing::Never, Healing::Never, Healing::Possible]),
            (tls(expired), Untimely, always),
            (plain("dns error"), UnknownHost, always),
            (plain("connection refused"), NoAnswer, always),
        ] {
            assert_eq!(ObstacleKind::of(&error), kind, "{error}");
            assert_eq!([Fixed, Renewed, Pod].map(|access| kind.healing(access)), healing, "{error}");
        }
    }
}

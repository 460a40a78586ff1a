//! What a plane answers when it does not do what was asked, classified once.

/// What a caller does about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The object has changed since it was read: read again, then retry.
    Conflict,
    NotFound,
    KindNotFound,
    Forbidden,
    Unauthenticated,
    /// It will be refused again until the request or the object is another.
    Invalid,
    TooLarge,
    /// The version has left the window or belongs to another epoch: list.
    Expired,
    /// The lease behind the write is somebody else's by now.
    LeaseLost,
    /// Overload, a network or a server that is away: the same may succeed later.
    Unavailable,
}

/// The message is for people; code decides by `fault`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub fault: Fault,
    pub message: String,
}

impl ApiError {
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }

    pub fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

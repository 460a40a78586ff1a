//! One HTTP listener and what stands behind it: identity, the API service,
//! GraphQL, health and metrics.

pub mod http;
pub mod identity;
pub mod metrics;

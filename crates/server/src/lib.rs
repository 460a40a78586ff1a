//! One HTTP listener and what stands behind it: identity, the API service,
//! GraphQL, hosted Git repositories, health and metrics.

pub mod api;
pub mod folder;
pub mod graphql;
pub mod http;
pub mod identity;
mod manifests;
pub mod metrics;
pub mod plane;
pub mod repos;
pub mod server;

//! The GraphQL front end of the API service.
//!
//! async-graphql holds the schema, parses, validates, limits and introspects;
//! answers and events are written by compiled selections, straight from the
//! stored bytes.

mod arguments;
mod bounds;
mod controllers;
mod encode;
mod execute;
mod explain;
mod fixed;
mod frames;
mod graphiql;
mod http;
mod kind_types;
mod names;
mod prepare;
mod protocol;
mod reply;
mod schema;
mod selection;
mod socket;
mod subscription;
mod types;

pub mod limits;

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};

use crate::api::KindsInForce;
use frames::FrameIds;
pub use http::{Front, routes};
use limits::Limits;
use prepare::Preparer;
use types::Types;

/// What depends on the kinds in force, swapped as one.
struct State {
    types: Types,
    preparer: Preparer,
}

/// The schema in force; made before the API service, which tells it of kinds.
pub struct Graphql {
    state: ArcSwap<State>,
    limits: Limits,
    frame_ids: Arc<FrameIds>,
    /// Why the schema in force is not that of the kinds in force.
    problem: ArcSwapOption<String>,
}

impl Graphql {
    pub fn new(limits: Limits) -> Self {
        let state = State::build(&[], &limits).expect("the fixed types make a schema");
        Self { state: ArcSwap::from_pointee(state), limits, frame_ids: Arc::default(), problem: ArcSwapOption::empty() }
    }

    /// Open subscriptions go on with what they were compiled to; the last good
    /// schema stays if a new one cannot be built.
    pub fn kinds_changed(&self, kinds: &KindsInForce) {
        match State::build(&kinds.order, &self.limits) {
            Ok(state) => {
                self.state.store(Arc::new(state));
                self.problem.store(None);
            }
            Err(error) => {
                tracing::error!(%error, "no GraphQL schema can be built from the kinds in force; the last good one stays");
                self.problem.store(Some(Arc::new(format!("the schema is not that of the kinds in force: {error}"))));
            }
        }
    }

    pub fn health(&self) -> Result<(), String> {
        self.problem.load().as_ref().map_or(Ok(()), |problem| Err(problem.to_string()))
    }

    pub fn sdl(&self) -> String {
        self.state.load().preparer.sdl()
    }
}

impl State {
    fn build(
        kinds: &[Arc<tidegate_model::kinds::Kind>],
        limits: &Limits,
    ) -> Result<Self, async_graphql::dynamic::SchemaError> {
        let types = Types::build(kinds);
        let schema = schema::build(&types, limits)?;
        Ok(Self { types, preparer: Preparer::new(schema, limits) })
    }
}

//! The objects of the model's own tests, through this door.

#[path = "../../../model/tests/corpus/gateways.rs"]
mod gateways;
#[path = "../../../model/tests/corpus/monitoring.rs"]
mod monitoring;
#[path = "../../../model/tests/corpus/routes.rs"]
mod routes;

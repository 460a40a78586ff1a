//! Reconcilers of the core kinds.

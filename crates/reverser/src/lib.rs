//! Cluster to Git.

//! stub
pub struct Applied;
pub struct ProjectError;

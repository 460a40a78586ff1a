//! What a file wants of an object, as text.

use tidegate_model::Object;

/// As JSON: a large change has all of its objects in memory at once, and
/// parsed each takes about ten times as much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Desired(Box<[u8]>);

impl Desired {
    pub fn new(object: &Object) -> Self {
        Self(serde_json::to_vec(object.root()).expect("JSON values serialize").into())
    }

    pub fn object(&self) -> Object {
        Object::from_json(&self.0).expect("it was written from an object")
    }

    /// Of JSON.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

//! Reading an object again whose content was too much to keep.

use tidegate_model::mirror::ResourceKey;

use super::claims::type_of;
use crate::branch::{ReadError, ReadFuture, Reader};
use crate::change::State;
use crate::cluster::{Api, object};
use crate::ingest::prepare;

pub(super) struct ClusterReader {
    pub api: Api,
}

impl Reader for ClusterReader {
    fn read<'r>(&'r self, key: &'r ResourceKey) -> ReadFuture<'r> {
        Box::pin(async move {
            let of = type_of(key);
            match self.api.get(&object(&of, key.namespace.as_deref(), &key.name)).await {
                Ok(found) => Ok(prepare(&of, found)
                    .and_then(|object| Some(State { yaml: object.content?.yaml, version: object.version }))),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(ReadError { key: key.clone(), message: error.told() }),
            }
        })
    }
}

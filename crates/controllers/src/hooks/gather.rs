//! What is sent along with an object, as it is now, within bounds.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use tidegate_model::{Object, ObjectKey, ResourceVersion};
use tidegate_runtime::{Client, Fault, Item, ReconcileError};

use super::answer::HookError;
use super::call::{Along, RelatedObjects};
use super::related_index::RelatedIndex;
use super::relation::{Place, Relation, digest};

/// Of one call. Objects that need more are better asked for by the endpoint
/// itself, page by page.
pub const RELATED_OBJECTS_MAX: usize = 200;
/// Of all related objects of one call; with 64 calls at once a hook holds
/// 512 MiB at most.
pub const RELATED_BYTES_MAX: usize = 8 << 20;
/// Reads at once for one call: a page of related objects should not cost as
/// many round trips.
const READS_MAX: usize = 8;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Gathered {
    pub objects: RelatedObjects,
    /// Of which objects, in which versions.
    pub digest: u64,
}

/// The inner error is that there is too much.
pub async fn gather(
    client: &Client,
    index: &RelatedIndex,
    key: &ObjectKey,
    object: &Object,
) -> Result<Result<Gathered, HookError>, ReconcileError> {
    let mut bounds = Bounds::default();
    let mut objects = Vec::with_capacity(index.relations().len());
    let mut versions: Vec<(usize, ObjectKey, ResourceVersion)> = Vec::new();
    for (at, relation) in index.relations().iter().enumerate() {
        let keys = match relation.asked(object) {
            Some(place) => keys(index, at, relation, &place, key),
            None => Vec::new(),
        };
        if let Err(excess) = bounds.count(relation, keys.len()) {
            return Ok(Err(excess));
        }
        let items = read(client, relation, object, keys).await?;
        if let Err(excess) = bounds.weigh(relation, &items) {
            return Ok(Err(excess));
        }
        versions.extend(items.iter().map(|item| (at, item.key.clone(), item.version)));
        objects.push((relation.name.clone(), along(relation, items)));
    }
    let digest = digest(versions.iter().map(|(at, key, version)| (*at, key, *version)));
    Ok(Ok(Gathered { objects, digest }))
}

/// One more than may be sent, at most.
fn keys(index: &RelatedIndex, at: usize, relation: &Relation, place: &Place, asker: &ObjectKey) -> Vec<ObjectKey> {
    match relation.named(place) {
        // Read even if the index has not heard of it yet.
        Some(named) => Vec::from_iter(Some(named).filter(|named| named != asker)),
        None => index.at(at, place, asker, RELATED_OBJECTS_MAX + 1),
    }
}

/// Those that are still there and still related: the index may be a moment
/// behind, and says so when it is not any more.
async fn read(
    client: &Client,
    relation: &Relation,
    object: &Object,
    keys: Vec<ObjectKey>,
) -> Result<Vec<Item>, ReconcileError> {
    let asked = relation.asked(object);
    let get = async |key: ObjectKey| match client.get(&relation.kind, &key).await {
        // Its definition is on the way out, and this controller with it.
        Err(error) if error.is(Fault::KindNotFound) => Ok(None),
        item => item,
    };
    let found: Vec<Option<Item>> = stream::iter(keys.into_iter().map(get)).buffered(READS_MAX).try_collect().await?;
    let is_related = |item: &Item| item.object().is_ok_and(|object| relation.taken(&object) == asked);
    Ok(found.into_iter().flatten().filter(is_related).collect())
}

fn along(relation: &Relation, items: Vec<Item>) -> Along<Bytes> {
    let mut json = items.into_iter().map(|item| item.json);
    if relation.is_of_one() { Along::One(json.next()) } else { Along::Many(json.collect()) }
}

/// What one call has taken so far.
#[derive(Default)]
struct Bounds {
    objects: usize,
    bytes: usize,
}

impl Bounds {
    fn count(&mut self, relation: &Relation, objects: usize) -> Result<(), HookError> {
        self.objects += objects;
        self.check(relation, self.objects > RELATED_OBJECTS_MAX, format!("{RELATED_OBJECTS_MAX} objects"))
    }

    fn weigh(&mut self, relation: &Relation, items: &[Item]) -> Result<(), HookError> {
        self.bytes += items.iter().map(|item| item.json.len()).sum::<usize>();
        self.check(relation, self.bytes > RELATED_BYTES_MAX, format!("{} MiB", RELATED_BYTES_MAX >> 20))
    }

    fn check(&self, relation: &Relation, is_exceeded: bool, limit: String) -> Result<(), HookError> {
        if !is_exceeded {
            return Ok(());
        }
        Err(HookError::TooMuch(format!(
            "with `{}` of spec.related there are more than {limit} to send along, which is the limit of one call: \
             narrow its selector, or let the endpoint list them itself",
            relation.name
        )))
    }
}

//! Lists: snapshots in pages, every page of one version.
//!
//! Invariant: a page after the first comes from the view of the first, held
//! here for a bounded time. Without it the reader is told to begin again; it
//! never gets pages of two versions.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use tidegate_model::{ObjectKey, ResourceVersion};
use xxhash_rust::xxh3::xxh3_64;

use crate::row::{self, Reader};
use crate::{ListError, Options, Selection, StoreError, StoredObject, View};

#[derive(Clone, Debug)]
pub struct ListRequest {
    pub selection: Selection,
    /// `None`: all in one page.
    pub limit: Option<usize>,
    /// The page ends with the object that reaches this size.
    pub bytes_max: Option<usize>,
    pub token: Option<ContinueToken>,
}

#[derive(Clone, Debug)]
pub struct Page {
    pub version: ResourceVersion,
    pub items: Vec<StoredObject>,
    pub next: Option<ContinueToken>,
    /// How many follow this page; known only where nothing is filtered.
    pub remaining: Option<u64>,
}

/// Opaque text: which view, how far, and of which selection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContinueToken {
    version: ResourceVersion,
    returned: u64,
    selection: u64,
    after: ObjectKey,
}

/// The views of lists that have more pages.
pub(crate) struct HeldViews {
    views: Mutex<HashMap<ResourceVersion, Held>>,
    max: usize,
    ttl: Duration,
}

struct Held {
    view: View,
    used: Instant,
}

pub(crate) fn list(held: &HeldViews, newest: View, request: &ListRequest) -> Result<Page, ListError> {
    let ListRequest { selection, limit, bytes_max, token } = request;
    let fingerprint = fingerprint(selection);
    let view = match token {
        None => newest,
        Some(token) if token.selection != fingerprint => return Err(ListError::InvalidToken),
        Some(token) => held.get(token.version).ok_or(ListError::Expired)?,
    };
    let (limit, bytes_max) = (limit.unwrap_or(usize::MAX).max(1), bytes_max.unwrap_or(usize::MAX));
    let mut objects = view.scan(selection, token.as_ref().map(|token| &token.after));
    let items = take(&mut objects, limit, bytes_max)?;
    let returned = token.as_ref().map_or(0, |token| token.returned) + items.len() as u64;
    // One object further, so that a last page is known to be the last.
    let has_more = objects.next().transpose()?.is_some();
    let after = items.last().filter(|_| has_more).map(|last| last.key.clone());
    let version = view.version();
    let next = after.map(|after| ContinueToken { version, returned, selection: fingerprint, after });
    let remaining = remaining(&view, selection, returned)?;
    if next.is_some() {
        held.hold(view);
    }
    Ok(Page { version, items, next, remaining })
}

fn take(
    objects: &mut impl Iterator<Item = Result<StoredObject, StoreError>>,
    limit: usize,
    bytes_max: usize,
) -> Result<Vec<StoredObject>, StoreError> {
    let (mut items, mut bytes) = (Vec::new(), 0);
    while items.len() < limit && bytes < bytes_max {
        let Some(object) = objects.next().transpose()? else { break };
        bytes += object.json.len();
        items.push(object);
    }
    Ok(items)
}

fn remaining(view: &View, selection: &Selection, returned: u64) -> Result<Option<u64>, ListError> {
    if !selection.labels.is_empty() || !selection.fields.is_empty() || selection.name.is_some() {
        return Ok(None);
    }
    let count = view.count(&selection.resource, selection.namespace.as_deref())?;
    Ok(Some(count.saturating_sub(returned)))
}

/// The same for the same selection, also after a restart.
fn fingerprint(selection: &Selection) -> u64 {
    let Selection { resource, namespace, name, fields, labels } = selection;
    xxh3_64(format!("{resource}\0{namespace:?}\0{name:?}\0{fields}\0{labels}").as_bytes())
}

impl HeldViews {
    pub fn new(options: &Options) -> Self {
        Self { views: Mutex::default(), max: options.list_snapshots_max, ttl: options.list_snapshot_ttl }
    }

    fn hold(&self, view: View) {
        let mut views = self.views.lock().expect(LOCK);
        let version = view.version();
        views.insert(version, Held { view, used: Instant::now() });
        if views.len() > self.max {
            let oldest = views.iter().min_by_key(|(_, held)| held.used).map(|(version, _)| *version);
            oldest.map(|version| views.remove(&version));
        }
    }

    fn get(&self, version: ResourceVersion) -> Option<View> {
        self.sweep();
        let mut views = self.views.lock().expect(LOCK);
        let held = views.get_mut(&version)?;
        held.used = Instant::now();
        Some(held.view.clone())
    }

    pub fn sweep(&self) {
        self.views.lock().expect(LOCK).retain(|_, held| held.used.elapsed() < self.ttl);
    }

    pub fn clear(&self) {
        self.views.lock().expect(LOCK).clear();
    }

    pub fn len(&self) -> usize {
        self.views.lock().expect(LOCK).len()
    }
}

const LOCK: &str = "no code panics while it holds the list of views";

impl fmt::Display for ContinueToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [self.version.raw(), self.returned, self.selection];
        let mut bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_be_bytes()).collect();
        bytes.extend(row::encode_key(&self.after));
        bytes.extend(xxh3_64(&bytes).to_be_bytes());
        f.write_str(&BASE64.encode(bytes))
    }
}

impl FromStr for ContinueToken {
    type Err = ListError;

    fn from_str(text: &str) -> Result<Self, ListError> {
        if text.len() > 2 * row::KEY_BYTES_MAX {
            return Err(ListError::InvalidToken);
        }
        let bytes = BASE64.decode(text).map_err(|_| ListError::InvalidToken)?;
        let (body, sum) = bytes.split_last_chunk::<8>().ok_or(ListError::InvalidToken)?;
        if xxh3_64(body).to_be_bytes() != *sum {
            return Err(ListError::InvalidToken);
        }
        Self::decode(body).map_err(|_| ListError::InvalidToken)
    }
}

impl ContinueToken {
    fn decode(body: &[u8]) -> Result<Self, &'static str> {
        let mut reader = Reader { rest: body };
        let (version, returned, selection) = (reader.version()?, reader.u64()?, reader.u64()?);
        Ok(Self { version, returned, selection, after: row::decode_key(reader.rest)? })
    }
}

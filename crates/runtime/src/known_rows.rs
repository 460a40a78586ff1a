//! The durable rows `known/` beside a list of the objects: both are in the same
//! order, so one is read as the other goes along.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_model::ObjectKey;

use crate::rows::{KNOWN, key_text, parse_key};
use crate::{ApiError, Item, Kind, Plane};

/// For one list, from its first page to its last.
pub(crate) struct KnownRows {
    plane: Arc<dyn Plane>,
    controller: Arc<str>,
    kind: Kind,
    rows: VecDeque<String>,
    after: Option<String>,
    ended: bool,
}

/// A page of the list against the rows.
pub(crate) struct Compared {
    /// In the page, and not known.
    pub fresh: Vec<ObjectKey>,
    /// Known, before the page or within it, and not listed.
    pub gone: Vec<ObjectKey>,
}

impl KnownRows {
    pub fn new(plane: Arc<dyn Plane>, controller: &Arc<str>, kind: &Kind) -> Self {
        let (controller, kind) = (controller.clone(), kind.clone());
        Self { plane, controller, kind, rows: VecDeque::new(), after: None, ended: false }
    }

    pub async fn compare(&mut self, items: &[Item], is_last: bool) -> Result<Compared, ApiError> {
        let (mut fresh, mut gone) = (Vec::new(), Vec::new());
        for item in items {
            let text = key_text(&item.key);
            while self.peek().await?.is_some_and(|known| **known < *text) {
                self.take_gone(&mut gone);
            }
            if self.peek().await?.is_some_and(|known| **known == *text) {
                self.rows.pop_front();
            } else {
                fresh.push(item.key.clone());
            }
        }
        while is_last && self.peek().await?.is_some() {
            self.take_gone(&mut gone);
        }
        Ok(Compared { fresh, gone })
    }

    fn take_gone(&mut self, gone: &mut Vec<ObjectKey>) {
        gone.extend(self.rows.pop_front().and_then(|text| parse_key(&self.kind, &text)));
    }

    async fn peek(&mut self) -> Result<Option<&String>, ApiError> {
        if self.rows.is_empty() && !self.ended {
            let rows = self.plane.state_read(&self.controller, KNOWN, self.after.as_deref()).await?;
            self.ended = rows.is_empty();
            self.after = rows.last().map(|row| row.name.clone()).or(self.after.take());
            self.rows = rows.into_iter().filter_map(|row| Some(row.name.strip_prefix(KNOWN)?.to_owned())).collect();
        }
        Ok(self.rows.front())
    }
}

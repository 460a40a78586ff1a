//! Which objects a reader asks for, and what a change means to it.

use std::sync::Arc;

use tidegate_model::{EventType, FieldSelector, GroupResource, LabelSelector, ObjectKey};

use crate::Event;
use crate::row;

#[derive(Clone, Debug)]
pub struct Selection {
    pub resource: GroupResource,
    /// `None`: all namespaces.
    pub namespace: Option<Arc<str>>,
    pub name: Option<Arc<str>>,
    /// What `namespace` and `name` cannot say: that a key is not something.
    pub fields: FieldSelector,
    pub labels: LabelSelector,
}

impl Selection {
    pub fn all(resource: GroupResource) -> Self {
        Self {
            resource,
            namespace: None,
            name: None,
            fields: FieldSelector::default(),
            labels: LabelSelector::default(),
        }
    }

    /// What the change is to a reader of this selection: `None` if it neither
    /// matched before nor matches now.
    pub fn transition(&self, event: &Event) -> Option<EventType> {
        if self.covers(&event.key) { self.label_transition(event) } else { None }
    }

    /// Whether scope and name fit; the labels are not looked at.
    pub(crate) fn covers(&self, key: &ObjectKey) -> bool {
        let fits = |wanted: &Option<Arc<str>>, actual: Option<&Arc<str>>| {
            wanted.as_ref().is_none_or(|wanted| Some(wanted) == actual)
        };
        self.resource == key.resource
            && fits(&self.name, Some(&key.name))
            && fits(&self.namespace, key.namespace.as_ref())
            && self.fields_match(key)
    }

    fn fields_match(&self, key: &ObjectKey) -> bool {
        self.fields.is_empty() || self.fields.matches(key.namespace.as_deref(), &key.name)
    }

    /// As [`Self::transition`], for an event whose scope and name are known to
    /// fit.
    pub(crate) fn label_transition(&self, event: &Event) -> Option<EventType> {
        // A key never changes, so neither does whether it is selected.
        if !self.fields_match(&event.key) {
            return None;
        }
        if self.labels.is_empty() {
            return Some(event.kind);
        }
        let matches_now = event.kind != EventType::Deleted && self.labels.matches(&event.labels);
        let previous = event.previous_labels.as_ref().unwrap_or(&event.labels);
        let matched_before = event.kind != EventType::Added && self.labels.matches(previous);
        match (matched_before, matches_now) {
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) => Some(EventType::Deleted),
            (false, false) => None,
        }
    }

    /// The longest prefix that all keys of this selection share.
    pub(crate) fn key_prefix(&self) -> Vec<u8> {
        row::resource_prefix(&self.resource, self.namespace.as_deref())
    }
}

//! Which channels an event can concern, found by its key and labels.
//!
//! Invariant: the work per event grows with its labels and with the channels
//! that it is for, never with all channels. A channel without a watcher is gone.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_model::{GroupResource, ResourceVersion};

use crate::Event;
use crate::hub::{Channel, ChannelKey};

pub(crate) struct Index {
    resources: HashMap<GroupResource, HashMap<Scope, Channels>>,
    /// Every event up to this one is in the channels that exist.
    pub pushed: ResourceVersion,
}

type Scope = (Option<Arc<str>>, Option<Arc<str>>);
type Label = (Box<str>, Box<str>);

/// The channels of one scope, by the label that they require.
#[derive(Default)]
struct Channels {
    plain: Option<Entry>,
    labelled: HashMap<Label, Entry>,
}

struct Entry {
    channel: Arc<Channel>,
    watchers: usize,
}

impl Index {
    pub fn new(pushed: ResourceVersion) -> Self {
        Self { resources: HashMap::new(), pushed }
    }

    pub fn join(&mut self, key: &ChannelKey) -> Arc<Channel> {
        let pushed = self.pushed;
        let new = || Entry { channel: Channel::new(pushed), watchers: 0 };
        let scopes = self.resources.entry(key.resource.clone()).or_default();
        let channels = scopes.entry((key.namespace.clone(), key.name.clone())).or_default();
        let entry = match &key.label {
            None => channels.plain.get_or_insert_with(new),
            Some(label) => channels.labelled.entry(label.clone()).or_insert_with(new),
        };
        entry.watchers += 1;
        entry.channel.clone()
    }

    pub fn leave(&mut self, key: &ChannelKey) {
        let scope = (key.namespace.clone(), key.name.clone());
        let Some(scopes) = self.resources.get_mut(&key.resource) else { return };
        let Some(channels) = scopes.get_mut(&scope) else { return };
        channels.leave(&key.label);
        if channels.plain.is_none() && channels.labelled.is_empty() {
            scopes.remove(&scope);
        }
        if scopes.is_empty() {
            self.resources.remove(&key.resource);
        }
    }

    /// Each channel that the event may concern, once.
    pub fn channels_of(&self, event: &Event, each: &mut impl FnMut(&Arc<Channel>)) {
        let Some(scopes) = self.resources.get(&event.key.resource) else { return };
        let name = Some(event.key.name.clone());
        let namespaces = [None, event.key.namespace.clone()];
        // A cluster-scoped object has one namespace to look at, not two.
        let namespaces = &namespaces[..if namespaces[1].is_some() { 2 } else { 1 }];
        for namespace in namespaces {
            for name in [&None, &name] {
                if let Some(channels) = scopes.get(&(namespace.clone(), name.clone())) {
                    channels.channels_of(event, each);
                }
            }
        }
    }

    pub fn each(&self, each: &mut impl FnMut(&Arc<Channel>)) {
        let all = self.resources.values().flat_map(HashMap::values);
        all.flat_map(|channels| channels.plain.iter().chain(channels.labelled.values()))
            .for_each(|entry| each(&entry.channel));
    }
}

impl Channels {
    fn leave(&mut self, label: &Option<Label>) {
        let entry = match label {
            None => self.plain.as_mut(),
            Some(label) => self.labelled.get_mut(label),
        };
        let Some(entry) = entry else { return };
        entry.watchers -= 1;
        if entry.watchers > 0 {
            return;
        }
        match label {
            None => self.plain = None,
            Some(label) => drop(self.labelled.remove(label)),
        }
    }

    fn channels_of(&self, event: &Event, each: &mut impl FnMut(&Arc<Channel>)) {
        if let Some(entry) = &self.plain {
            each(&entry.channel);
        }
        if self.labelled.is_empty() {
            return;
        }
        let now = event.labels.iter();
        let before = event.previous_labels.iter().flat_map(|labels| labels.iter());
        // An object that loses a label concerns those who watch for it.
        let lost = before.filter(|(key, value)| event.labels.get(key) != Some(value));
        for (key, value) in now.chain(lost) {
            if let Some(entry) = self.labelled.get(&(key.into(), value.into())) {
                each(&entry.channel);
            }
        }
    }
}

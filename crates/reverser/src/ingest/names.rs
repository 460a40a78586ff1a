//! Equal names, kept once: a hundred thousand objects of one type have the
//! same group, and few namespaces.

use std::collections::HashSet;
use std::sync::Arc;

use super::prepare::Prepared;

/// Names of one claim, some 100 bytes each. What is beyond is kept as it comes.
const NAMES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Names(HashSet<Arc<str>>);

impl Names {
    pub fn share(&mut self, object: &mut Prepared) {
        let key = &mut object.key;
        let of_key = [&mut key.group, &mut key.version, &mut key.resource].into_iter().chain(&mut key.namespace);
        of_key.chain(&mut object.version.field_manager).for_each(|name| self.share_name(name));
    }

    fn share_name(&mut self, name: &mut Arc<str>) {
        match self.0.get(name) {
            Some(known) => *name = known.clone(),
            None if self.0.len() < NAMES_MAX => _ = self.0.insert(name.clone()),
            None => {}
        }
    }
}

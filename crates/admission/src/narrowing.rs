//! A repository whose rules become narrower: what it has in force must fit
//! into the new ones, or the change is refused.
//!
//! Invariant: a repository has nothing in force that its rules do not allow,
//! so its branch can be projected at any time.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::{Document, parse_file};
use tidegate_model::{FieldError, FieldErrorReason, Object, ObjectKey};

use crate::judge::{Judged, granted};
use crate::places::{is_repository, key_of};
use crate::report::{Report, diagnostics};
use crate::{Concerned, File, Rules, State, parallel};

/// What a repository may do from now on, and where that is said.
pub(crate) struct Narrowed<'n, 'd> {
    pub rules: Rules,
    document: &'n Document<'d>,
}

/// The repositories that may do less once `judged` is in force.
pub(crate) fn narrowed<'n, 'd, S: State>(
    state: &S,
    judged: &'n [Judged<'d>],
) -> Result<Vec<Narrowed<'n, 'd>>, S::Error> {
    let mut narrowed = Vec::new();
    for Judged { key, desired, document, .. } in judged.iter().filter(|judged| is_repository(&judged.key)) {
        let before = state.current(key)?.and_then(|current| granted(key, &current));
        let after = granted(key, &desired.object());
        if let (Some(before), Some(rules)) = (before, after)
            && !rules.exceeded_by(&before).is_empty()
        {
            narrowed.push(Narrowed { rules, document });
        }
    }
    Ok(narrowed)
}

impl Narrowed<'_, '_> {
    /// Refuses it if something would be outside: of the files in force that do
    /// not change, and of what the change itself defines for this repository.
    pub fn check(&self, kinds: &KindSet, concerned: &[Concerned<'_>], own: &[Judged<'_>], report: &mut Report) {
        let mut outside = Outside::default();
        for Concerned { rules, files } in
            concerned.iter().filter(|files| files.rules.repository == self.rules.repository)
        {
            let found = parallel::map(files.clone(), |file| self.outside_of(kinds, rules, file));
            found.into_iter().for_each(|found| outside.merge(found));
        }
        for Judged { key, desired, document, .. } in own {
            outside.merge(self.look(kinds, key, &desired.object(), document));
        }
        report.extend(diagnostics(self.document, &outside.errors(&self.rules.repository)));
    }

    fn outside_of(&self, kinds: &KindSet, before: &Rules, file: File<'_>) -> Outside {
        let mut outside = Outside::default();
        for document in parse_file(file.path, file.bytes).unwrap_or_default() {
            if let Some((kind, _)) = kinds.by_gvk(document.object.api_version(), document.object.kind()) {
                let key = key_of(kind, &document, before);
                outside.merge(self.look(kinds, &key, &document.object, &document));
            }
        }
        outside
    }

    fn look(&self, kinds: &KindSet, key: &ObjectKey, object: &Object, document: &Document<'_>) -> Outside {
        let lacking = kinds.by_resource(&key.resource).map(|kind| self.rules.lacking(kind, key));
        let given_away = granted(key, object).map(|granted| self.rules.exceeded_by(&granted));
        let fields = lacking.into_iter().chain(given_away).flatten();
        let place = || format!("{key} at {}:{}", document.file, document.line);
        Outside(fields.map(|field| (field, Found { count: 1, first: place() })).collect())
    }
}

/// By the field of the Repository that would have to allow it.
#[derive(Default)]
struct Outside(BTreeMap<&'static str, Found>);

struct Found {
    count: usize,
    first: String,
}

impl Outside {
    fn merge(&mut self, other: Self) {
        for (field, found) in other.0 {
            match self.0.get_mut(field) {
                Some(known) => known.count += found.count,
                None => drop(self.0.insert(field, found)),
            }
        }
    }

    fn errors(&self, repository: &Arc<str>) -> Vec<FieldError> {
        let error = |(field, Found { count, first }): (&&'static str, &Found)| {
            let objects = if *count == 1 { "1 object" } else { &format!("{count} objects") };
            let message = format!(
                "{objects} of repository {repository} would be outside of what it may define, first {first}: change that there first, or keep this as it was"
            );
            FieldError::new(*field, FieldErrorReason::Forbidden, message)
        };
        self.0.iter().map(error).collect()
    }
}

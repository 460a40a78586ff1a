//! A definition that changes is a change of all objects of its kind: what
//! their files say is pruned, filled in and checked anew.
//!
//! Invariant: what is stored is what the files in force say under the kinds in
//! force, whichever of the two changed last. So a branch that was pushed in
//! steps can be projected at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::{Diagnostic, Document};
use tidegate_model::{GroupResource, ObjectKey};

use crate::definitions::InForce;
use crate::judge::{Judged, Judgement, Refused, take_in, unknown_kind};
use crate::judgements::{Judgements, judge_files};
use crate::places::{defined_resource, key_of};
use crate::plan::{Cause, Place, PlannedPut, warnings_of};
use crate::report::Report;
use crate::{Concerned, Provenance, Rules, State};

/// The kinds whose definition changes, and where each is defined now.
pub(crate) fn replaced<S: State>(
    kinds: &KindSet,
    state: &S,
    definitions: &[Judged<'_>],
) -> Result<BTreeMap<GroupResource, Place>, S::Error> {
    let mut replaced = BTreeMap::new();
    for Judged { key, desired, document, .. } in definitions {
        let Some(resource) = defined_resource(key).filter(|resource| kinds.by_resource(resource).is_some()) else {
            continue;
        };
        let before = state.current(key)?;
        if before.is_none_or(|before| before.spec() != desired.object().spec()) {
            replaced.insert(resource, Place { path: document.file.into(), line: document.line });
        }
    }
    Ok(replaced)
}

pub(crate) struct Readmission<'r, S> {
    before: &'r KindSet,
    after: &'r KindSet,
    state: &'r S,
    /// Of the change.
    rules: &'r Rules,
    replaced: BTreeMap<GroupResource, Place>,
}

#[derive(Default)]
pub(crate) struct Readmitted {
    pub puts: Vec<PlannedPut>,
    pub warnings: Vec<Diagnostic>,
}

impl<'r, S: State> Readmission<'r, S> {
    pub fn new(
        before: &'r KindSet,
        in_force: &'r InForce,
        state: &'r S,
        rules: &'r Rules,
        definitions: &[Judged<'_>],
    ) -> Result<Self, S::Error> {
        let mut replaced = replaced(before, state, definitions)?;
        // Refused as a whole, if objects are left.
        for broken in in_force.replaced.iter().filter(|replaced| !replaced.broken.is_empty()) {
            replaced.remove(&broken.resource);
        }
        Ok(Self { before, after: &in_force.kinds, state, rules, replaced })
    }

    pub fn admit(&self, concerned: &[Concerned<'_>], report: &mut Report) -> Result<Readmitted, S::Error> {
        let mut readmitted = Readmitted::default();
        for Concerned { rules, files } in concerned {
            let judgements = judge_files(files.clone(), |document| self.judge(rules, document))?;
            let Judgements { admitted, diagnostics, .. } = judgements;
            report.extend(diagnostics);
            // Of others' files their authors are told when they next push.
            if self.is_own(rules) {
                readmitted.warnings.extend(warnings_of(&admitted));
            }
            readmitted.puts.extend(admitted.into_iter().filter_map(|judged| self.put(rules, judged)));
        }
        Ok(readmitted)
    }

    fn is_own(&self, rules: &Rules) -> bool {
        rules.repository == self.rules.repository
    }

    /// `None` for what the new definitions do not concern, or is on its way
    /// out. Who may define what was settled when the file was pushed.
    fn judge<'d>(&self, rules: &Rules, document: Document<'d>) -> Result<Option<Judgement<'d>>, S::Error> {
        let Some((kind, _)) = self.before.by_gvk(document.object.api_version(), document.object.kind()) else {
            return Ok(None);
        };
        let Some(definition) = self.replaced.get(&kind.resource) else { return Ok(None) };
        let key = key_of(kind, &document, rules);
        let Some(current) = self.state.current(&key)? else { return Ok(None) };
        let here = Provenance { repository: &rules.repository, path: document.file };
        if Provenance::of(&current) != Some(here) || current.deletion_timestamp().is_some() {
            return Ok(None);
        }
        let judgement = match self.after.by_gvk(document.object.api_version(), document.object.kind()) {
            // As in an empty store: its author changed nothing, so a rule
            // about changes has nothing to say.
            Some((kind, version)) => take_in(kind, version, key.clone(), document, None),
            None => Err(unknown_kind(self.after, &document)),
        };
        Ok(Some(judgement.map_err(|refused| self.explain(refused, rules, &key, definition))))
    }

    /// Whoever pushed changed the definition: that is where the cause is, and
    /// of others' files they are told the place alone.
    fn explain(&self, refused: Refused, rules: &Rules, key: &ObjectKey, definition: &Place) -> Refused {
        let Place { path, line } = definition;
        let own = |diagnostic: Diagnostic| {
            let message = format!("{} (its definition changed in this push: {path}:{line})", diagnostic.message);
            Diagnostic { message, ..diagnostic }
        };
        let foreign = |diagnostic: Diagnostic| {
            let place = Diagnostic { message: String::new(), ..diagnostic }.to_string();
            let message = format!(
                "{key} of repository {} would no longer fit, at {}: change it there first",
                rules.repository,
                place.trim_end_matches(": ")
            );
            Diagnostic::at(path, *line, message)
        };
        let diagnostics = refused.diagnostics.into_iter();
        let diagnostics = match self.is_own(rules) {
            true => diagnostics.map(own).collect(),
            false => diagnostics.take(1).map(foreign).collect(),
        };
        Refused { diagnostics, ..refused }
    }

    fn put(&self, rules: &Rules, Judged { key, desired, document, .. }: Judged<'_>) -> Option<PlannedPut> {
        let path = self.replaced.get(&key.resource)?.path.clone();
        let owner = (!self.is_own(rules)).then(|| rules.repository.clone());
        let place = Place { path: Arc::from(document.file), line: document.line };
        Some(PlannedPut { key, desired, place, cause: Cause::Definition { path, owner } })
    }
}

//! The plan: what the store must do for a change, or why it must not.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::{Diagnostic, Document};
use tidegate_model::{FieldError, FieldErrorReason, ObjectKey};

use crate::definitions::{Subject, defines_a_kind, may_define, put_in_force};
use crate::judge::{Judge, Judged};
use crate::judgements::judge_files;
use crate::narrowing::narrowed;
use crate::places::{is_definition, is_namespace, namespace_key};
use crate::readmission::Readmission;
use crate::removals::{self, Removal};
use crate::report::{Report, diagnostics};
use crate::{Change, Desired, File, Rules, State, warnings};

/// Objects of one change, which is applied in one commit: a million and what
/// defines them, as the store takes by default.
pub const CHANGE_OBJECTS_MAX: usize = 1_100_000;

#[derive(Debug)]
pub enum Verdict {
    Admit(Plan),
    Reject(Vec<Diagnostic>),
}

/// To be applied in one commit, with [`crate::next_object`] for each put,
/// [`crate::delete_object`] for each delete and [`crate::drain_namespace`] for
/// each drain.
#[derive(Debug)]
pub struct Plan {
    /// Definitions first, then namespaces, then the rest.
    pub puts: Vec<PlannedPut>,
    pub deletes: Vec<ObjectKey>,
    /// Namespaces that are deleted while there are objects in them: they go
    /// when they are empty.
    pub drains: Vec<ObjectKey>,
    /// To be shown to whoever pushed; nothing is refused for them.
    pub warnings: Vec<Diagnostic>,
    /// The kinds once it is applied.
    pub kinds: KindSet,
}

#[derive(Clone, Debug)]
pub struct PlannedPut {
    pub key: ObjectKey,
    /// What its author wants: no system metadata and no status.
    pub desired: Desired,
    pub place: Place,
    pub cause: Cause,
}

/// Why an object is put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Its file changed.
    File,
    /// Its file is as it was, but not the definition of its kind.
    Definition {
        /// The file of the definition.
        path: Arc<str>,
        /// The repository of the object, if it is not that of the change.
        owner: Option<Arc<str>>,
    },
}

impl Cause {
    /// The repository of the object, if it is not that of the change.
    pub fn owner(&self) -> Option<&str> {
        match self {
            Self::Definition { owner, .. } => owner.as_deref(),
            Self::File => None,
        }
    }
}

/// Where in the repository an object is defined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    pub path: Arc<str>,
    pub line: usize,
}

/// `Err` only if the state could not be read.
pub fn plan<S: State>(kinds: &KindSet, state: &S, rules: &Rules, change: &Change<'_>) -> Result<Verdict, S::Error> {
    let mut report = Report::default();
    let touched: HashSet<&str> = change.paths().collect();
    let mut removals = removals::candidates(change, state, rules)?;

    let judge = Judge { kinds, state, rules, touched: &touched };
    let definitions = judge_files(definition_files(change, &removals), |document| {
        defines_a_kind(&document).then(|| judge.judge(document)).transpose()
    })?;
    definitions.claim(&mut removals);
    let in_force = put_in_force(kinds, &removals, &definitions.admitted, &mut report);
    let readmission = Readmission::new(kinds, &in_force, state, rules, &definitions.admitted)?;
    let readmitted = readmission.admit(&change.concerned, &mut report)?;

    // Of a kind whose definition is refused nothing can be said.
    let refused: Vec<Box<Subject>> = definitions.refused.into_iter().filter_map(|refused| refused.subject).collect();
    let is_other = |document: &Document<'_>| {
        !defines_a_kind(document) && !refused.iter().any(|subject| subject.is_kind_of(document))
    };
    let judge = Judge { kinds: &in_force.kinds, state, rules, touched: &touched };
    let others =
        judge_files(change.files.clone(), |document| is_other(&document).then(|| judge.judge(document)).transpose())?;
    others.claim(&mut removals);
    report.extend(definitions.diagnostics);
    report.extend(others.diagnostics);
    let mut admitted = definitions.admitted;
    admitted.extend(others.admitted);
    for narrowed in narrowed(state, &admitted)? {
        let own: &[_] = if narrowed.rules.repository == rules.repository { &admitted } else { &[] };
        narrowed.check(&in_force.kinds, &change.concerned, own, &mut report);
    }
    let admitted = without_duplicates(admitted, &mut report);
    check_namespaces(&admitted, &removals, state, &mut report)?;
    removals::check(&mut removals, &in_force, kinds, state, &mut report)?;

    Ok(match report.finish() {
        Some(diagnostics) => Verdict::Reject(diagnostics),
        None => {
            let mut warnings: Vec<_> = removals.iter().filter_map(removals::warning).collect();
            warnings.extend(warnings_of(&admitted));
            warnings.extend(readmitted.warnings);
            let (drained, deleted): (Vec<_>, Vec<_>) =
                removals.into_iter().partition(|removal| removal.left_inside > 0);
            let keys = |removals: Vec<Removal<'_>>| removals.into_iter().map(|removal| removal.key).collect();
            let (drains, deletes) = (keys(drained), keys(deleted));
            let mut puts = in_order(admitted);
            puts.extend(readmitted.puts);
            Verdict::Admit(Plan { puts, deletes, drains, warnings, kinds: in_force.kinds })
        }
    })
}

/// Those that may define a kind, and those that did: whether such a file can be
/// read decides about its kind.
fn definition_files<'c>(change: &Change<'c>, removals: &[Removal<'_>]) -> Vec<File<'c>> {
    let did: HashSet<&str> =
        removals.iter().filter(|removal| is_definition(&removal.key)).map(|removal| removal.path).collect();
    let is_one = |file: &&File<'_>| may_define(file.bytes) || did.contains(file.path);
    change.files.iter().filter(is_one).copied().collect()
}

/// Two places for one object are an error that names both.
fn without_duplicates<'d>(judged: Vec<Judged<'d>>, report: &mut Report) -> Vec<Judged<'d>> {
    let mut first_places: HashMap<ObjectKey, (&str, usize)> = HashMap::with_capacity(judged.len());
    let mut unique = Vec::with_capacity(judged.len());
    for judged in judged {
        let document = &judged.document;
        match first_places.get(&judged.key) {
            None => {
                first_places.insert(judged.key.clone(), (document.file, document.line));
                unique.push(judged);
            }
            Some((file, line)) => {
                let message = format!("{} is already defined at {file}:{line}: remove one of the two", judged.key);
                let error = FieldError::new("metadata.name", FieldErrorReason::Duplicate, message);
                report.extend(diagnostics(document, &[error]));
            }
        }
    }
    unique
}

/// The namespace of each object exists, or comes with the same change. One
/// that is being deleted takes changes of what is in it, and nothing new.
fn check_namespaces<S: State>(
    judged: &[Judged<'_>],
    removals: &[Removal<'_>],
    state: &S,
    report: &mut Report,
) -> Result<(), S::Error> {
    let created = judged.iter().filter(|judged| is_namespace(&judged.key)).map(|judged| &*judged.key.name);
    let mut known: HashMap<&str, NamespaceState> = created.map(|name| (name, NamespaceState::Open)).collect();
    let removed = removals.iter().filter(|removal| is_namespace(&removal.key));
    known.extend(removed.map(|removal| (&*removal.key.name, NamespaceState::Closed("is removed by the same change"))));
    for Judged { key, document, .. } in judged {
        let Some(namespace) = key.namespace.as_deref() else { continue };
        let namespace_state = match known.get(namespace) {
            Some(known) => *known,
            None => *known.entry(namespace).or_insert(NamespaceState::read(state, namespace)?),
        };
        let problem = match namespace_state {
            NamespaceState::Open => continue,
            NamespaceState::Closed(_) if state.current(key)?.is_some() => continue,
            NamespaceState::Closed(why) => format!("{why} and takes nothing new: use another"),
            NamespaceState::Missing => "does not exist: define it in the same change, or use another".into(),
        };
        let message = format!("namespace {namespace} {problem}");
        let error = FieldError::new("metadata.namespace", FieldErrorReason::NotFound, message);
        report.extend(diagnostics(document, &[error]));
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum NamespaceState {
    Open,
    /// On its way out, and why.
    Closed(&'static str),
    Missing,
}

impl NamespaceState {
    fn read<S: State>(state: &S, namespace: &str) -> Result<Self, S::Error> {
        Ok(match state.current(&namespace_key(namespace))? {
            None => Self::Missing,
            Some(object) if object.deletion_timestamp().is_some() => Self::Closed("is being deleted"),
            Some(_) => Self::Open,
        })
    }
}

pub(crate) fn warnings_of(admitted: &[Judged<'_>]) -> Vec<Diagnostic> {
    let warnings = admitted.iter().flat_map(|judged| judged.warnings.iter().map(|warning| (&judged.document, warning)));
    warnings::show(warnings)
}

fn in_order(mut judged: Vec<Judged<'_>>) -> Vec<PlannedPut> {
    judged.sort_by_key(|judged| (!is_definition(&judged.key), !is_namespace(&judged.key)));
    let put = |Judged { key, desired, document, .. }: Judged<'_>| {
        let path: Arc<str> = document.file.into();
        PlannedPut { key, desired, place: Place { path, line: document.line }, cause: Cause::File }
    };
    judged.into_iter().map(put).collect()
}

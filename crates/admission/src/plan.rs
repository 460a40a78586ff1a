//! The plan: what the store must do for a change, or why it must not.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::{Diagnostic, Document, parse_file};
use tidegate_model::{FieldError, FieldErrorReason, Object, ObjectKey};

use crate::definitions::{defines_a_kind, is_of_kind, put_in_force};
use crate::judge::{Judge, Judged, Refused};
use crate::places::{is_definition, is_namespace, namespace_key};
use crate::removals::{self, Removal};
use crate::report::{Report, diagnostics};
use crate::{Change, Rules, State, parallel, warnings};

/// Objects of one change, which is applied in one commit: a million and what
/// defines them, as the store takes by default. ~5 KiB each in memory make
/// about 5 GiB; whoever has less lowers how many files a push may change.
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
    pub desired: Object,
    pub place: Place,
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
    let Parsed { documents, unread } = parse(change, &mut report);
    let touched: HashSet<&str> = change.paths().collect();
    let mut removals = removals::candidates(change, state, rules)?;
    removals.retain(|removal| !unread.contains(removal.path));

    let (definitions, mut others): (Vec<_>, Vec<_>) = documents.into_iter().partition(defines_a_kind);
    let judge = Judge { kinds, state, rules, touched: &touched };
    let definitions = judge_all(&judge, definitions, &mut report)?;
    definitions.claim(&mut removals);
    let in_force = put_in_force(kinds, &removals, &definitions.admitted, &mut report);
    // Of a kind whose definition is refused nothing can be said.
    others.retain(|document| !definitions.refused.iter().any(|refused| is_of_kind(document, &refused.document)));

    let judge = Judge { kinds: &in_force.kinds, state, rules, touched: &touched };
    let others = judge_all(&judge, others, &mut report)?;
    others.claim(&mut removals);
    let mut admitted = definitions.admitted;
    admitted.extend(others.admitted);
    let admitted = without_duplicates(admitted, &mut report);
    check_namespaces(&admitted, &removals, state, &mut report)?;
    removals::check(&mut removals, &in_force, kinds, state, &mut report)?;

    Ok(match report.finish() {
        Some(diagnostics) => Verdict::Reject(diagnostics),
        None => {
            let mut warnings: Vec<_> = removals.iter().filter_map(removals::warning).collect();
            warnings.extend(warnings_of(&admitted));
            let (drained, deleted): (Vec<_>, Vec<_>) =
                removals.into_iter().partition(|removal| removal.left_inside > 0);
            let keys = |removals: Vec<Removal<'_>>| removals.into_iter().map(|removal| removal.key).collect();
            let (drains, deletes) = (keys(drained), keys(deleted));
            Verdict::Admit(Plan { puts: in_order(admitted), deletes, drains, warnings, kinds: in_force.kinds })
        }
    })
}

struct Parsed<'c> {
    documents: Vec<Document<'c>>,
    /// Files that cannot be read: what they defined is not removed, either.
    unread: HashSet<&'c str>,
}

fn parse<'c>(change: &Change<'c>, report: &mut Report) -> Parsed<'c> {
    let mut documents = Vec::new();
    let mut unread = HashSet::new();
    let parsed = parallel::map(change.files.clone(), |file| parse_file(file.path, file.bytes));
    for (file, parsed) in change.files.iter().zip(parsed) {
        match parsed {
            Ok(parsed) => documents.extend(parsed),
            Err(diagnostics) => {
                unread.insert(file.path);
                report.extend(diagnostics);
            }
        }
    }
    if let Some(beyond) = documents.get(CHANGE_OBJECTS_MAX) {
        let message = format!("a change of more than {CHANGE_OBJECTS_MAX} objects: push it in several steps");
        report.add(Diagnostic::at(beyond.file, beyond.line, message));
        documents.truncate(CHANGE_OBJECTS_MAX);
    }
    Parsed { documents, unread }
}

struct Judgements<'d> {
    admitted: Vec<Judged<'d>>,
    refused: Vec<Refused<'d>>,
}

impl Judgements<'_> {
    /// What a file of the change speaks of is not removed.
    fn claim(&self, removals: &mut Vec<Removal<'_>>) {
        let refused = self.refused.iter().filter_map(|refused| refused.key.as_ref());
        let claimed: HashSet<&ObjectKey> = self.admitted.iter().map(|judged| &judged.key).chain(refused).collect();
        removals.retain(|removal| !claimed.contains(&removal.key));
    }
}

fn judge_all<'d, S: State>(
    judge: &Judge<'_, S>,
    documents: Vec<Document<'d>>,
    report: &mut Report,
) -> Result<Judgements<'d>, S::Error> {
    let mut judgements = Judgements { admitted: Vec::with_capacity(documents.len()), refused: Vec::new() };
    for judgement in parallel::map(documents, |document| judge.judge(document)) {
        match judgement? {
            Ok(judged) => judgements.admitted.push(judged),
            Err(mut refused) => {
                report.extend(refused.diagnostics.drain(..));
                judgements.refused.push(refused);
            }
        }
    }
    Ok(judgements)
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

fn warnings_of(admitted: &[Judged<'_>]) -> Vec<Diagnostic> {
    let warnings = admitted.iter().flat_map(|judged| judged.warnings.iter().map(|warning| (&judged.document, warning)));
    warnings::show(warnings)
}

fn in_order(mut judged: Vec<Judged<'_>>) -> Vec<PlannedPut> {
    judged.sort_by_key(|judged| (!is_definition(&judged.key), !is_namespace(&judged.key)));
    let put = |Judged { key, object, document, .. }: Judged<'_>| {
        let path: Arc<str> = document.file.into();
        PlannedPut { key, desired: object, place: Place { path, line: document.line } }
    };
    judged.into_iter().map(put).collect()
}

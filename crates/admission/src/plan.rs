//! The plan: what the store must do for a change, or why it must not.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::{Diagnostic, Document, parse_file};
use tidegate_model::{FieldError, FieldErrorReason, ObjectKey};

use crate::definitions::{Subject, defines_a_kind, may_define, put_in_force};
use crate::judge::{Judge, Judged, Judgement, Refused};
use crate::places::{is_definition, is_namespace, namespace_key};
use crate::removals::{self, Removal};
use crate::report::{Report, diagnostics};
use crate::{Change, Desired, File, Rules, State, parallel, warnings};

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
    let definitions = judge_files(&judge, definition_files(change, &removals), defines_a_kind)?;
    definitions.claim(&mut removals);
    let in_force = put_in_force(kinds, &removals, &definitions.admitted, &mut report);

    // Of a kind whose definition is refused nothing can be said.
    let refused: Vec<Subject> = definitions.refused.into_iter().filter_map(|refused| refused.subject).collect();
    let is_other = |document: &Document<'_>| {
        !defines_a_kind(document) && !refused.iter().any(|subject| subject.is_kind_of(document))
    };
    let judge = Judge { kinds: &in_force.kinds, state, rules, touched: &touched };
    let others = judge_files(&judge, change.files.clone(), is_other)?;
    others.claim(&mut removals);
    report.extend(definitions.diagnostics);
    report.extend(others.diagnostics);
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

/// Those that may define a kind, and those that did: whether such a file can be
/// read decides about its kind.
fn definition_files<'c>(change: &Change<'c>, removals: &[Removal<'_>]) -> Vec<File<'c>> {
    let did: HashSet<&str> =
        removals.iter().filter(|removal| is_definition(&removal.key)).map(|removal| removal.path).collect();
    let is_one = |file: &&File<'_>| may_define(file.bytes) || did.contains(file.path);
    change.files.iter().filter(is_one).copied().collect()
}

#[derive(Default)]
struct Judgements<'d> {
    admitted: Vec<Judged<'d>>,
    refused: Vec<Refused>,
    /// Files that cannot be read.
    unread: HashSet<&'d str>,
    diagnostics: Vec<Diagnostic>,
}

impl Judgements<'_> {
    /// What a file of the change speaks of is not removed, nor what a file
    /// defined that cannot be read.
    fn claim(&self, removals: &mut Vec<Removal<'_>>) {
        let refused = self.refused.iter().filter_map(|refused| refused.key.as_ref());
        let claimed: HashSet<&ObjectKey> = self.admitted.iter().map(|judged| &judged.key).chain(refused).collect();
        removals.retain(|removal| !claimed.contains(&removal.key) && !self.unread.contains(removal.path));
    }
}

/// What one file comes to.
enum Seen<'d> {
    Read(Vec<Judgement<'d>>),
    Unread(Vec<Diagnostic>),
    TooMuch,
}

/// Reads and judges file by file, so that only one of each thread is parsed
/// at a time.
fn judge_files<'d, S: State>(
    judge: &Judge<'_, S>,
    files: Vec<File<'d>>,
    is_meant: impl Fn(&Document<'_>) -> bool + Sync,
) -> Result<Judgements<'d>, S::Error> {
    let objects = AtomicUsize::new(0);
    let see = |file: File<'d>| {
        let documents = match parse_file(file.path, file.bytes) {
            Ok(documents) => documents,
            Err(diagnostics) => return Ok(Seen::Unread(diagnostics)),
        };
        if objects.fetch_add(documents.len(), Ordering::Relaxed) + documents.len() > CHANGE_OBJECTS_MAX {
            return Ok(Seen::TooMuch);
        }
        let meant = documents.into_iter().filter(&is_meant);
        meant.map(|document| judge.judge(document)).collect::<Result<_, _>>().map(Seen::Read)
    };
    let mut judgements = Judgements::default();
    for (path, seen) in parallel::map(files, |file| (file.path, see(file))) {
        judgements.add(path, seen?);
    }
    Ok(judgements)
}

impl<'d> Judgements<'d> {
    fn add(&mut self, path: &'d str, seen: Seen<'d>) {
        match seen {
            Seen::Read(judged) => judged.into_iter().for_each(|judgement| match judgement {
                Ok(judged) => self.admitted.push(judged),
                Err(mut refused) => {
                    self.diagnostics.append(&mut refused.diagnostics);
                    self.refused.push(refused);
                }
            }),
            Seen::Unread(diagnostics) => {
                self.unread.insert(path);
                self.diagnostics.extend(diagnostics);
            }
            Seen::TooMuch => {
                let message = format!("a change of more than {CHANGE_OBJECTS_MAX} objects: push it in several steps");
                self.unread.insert(path);
                self.diagnostics.push(Diagnostic::of_file(path, message));
            }
        }
    }
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
    let put = |Judged { key, desired, document, .. }: Judged<'_>| {
        let path: Arc<str> = document.file.into();
        PlannedPut { key, desired, place: Place { path, line: document.line } }
    };
    judged.into_iter().map(put).collect()
}

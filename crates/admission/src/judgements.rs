//! Many files, read and judged.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_model::ObjectKey;
use tidegate_model::manifest::{Diagnostic, Document, parse_file};

use crate::judge::{Judged, Judgement, Refused};
use crate::plan::CHANGE_OBJECTS_MAX;
use crate::removals::Removal;
use crate::{File, parallel};

#[derive(Default)]
pub(crate) struct Judgements<'d> {
    pub admitted: Vec<Judged<'d>>,
    pub refused: Vec<Refused>,
    /// Files that cannot be read.
    unread: HashSet<&'d str>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Judgements<'_> {
    /// What a file of the change speaks of is not removed, nor what a file
    /// defined that cannot be read.
    pub fn claim(&self, removals: &mut Vec<Removal<'_>>) {
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
/// at a time. `judge` passes over a document with `None`.
pub(crate) fn judge_files<'d, E: Send>(
    files: Vec<File<'d>>,
    judge: impl Fn(Document<'d>) -> Result<Option<Judgement<'d>>, E> + Sync,
) -> Result<Judgements<'d>, E> {
    let objects = AtomicUsize::new(0);
    let see = |file: File<'d>| {
        let documents = match parse_file(file.path, file.bytes) {
            Ok(documents) => documents,
            Err(diagnostics) => return Ok(Seen::Unread(diagnostics)),
        };
        if objects.fetch_add(documents.len(), Ordering::Relaxed) + documents.len() > CHANGE_OBJECTS_MAX {
            return Ok(Seen::TooMuch);
        }
        documents
            .into_iter()
            .filter_map(|document| judge(document).transpose())
            .collect::<Result<_, _>>()
            .map(Seen::Read)
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

//! What has to be known of files that did not change, before a change can be
//! judged: of kinds that it defines anew, and of repositories that may do less.

use std::sync::Arc;

use tidegate_model::GroupResource;
use tidegate_model::kinds::KindSet;
use tidegate_model::manifest::Document;

use crate::definitions::{defines_a_kind, may_define, may_have_word};
use crate::judge::Judge;
use crate::judgements::judge_files;
use crate::narrowing::narrowed;
use crate::readmission::replaced;
use crate::{Change, File, Rules, State};

const REPOSITORY: &str = "Repository";

/// [`crate::plan`] wants these files, if the change does not have them
/// already, as [`Change::concerned`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// Those with objects of these kinds, of every repository.
    pub kinds: Vec<GroupResource>,
    /// All of these repositories, each as `namespace/name`.
    pub repositories: Vec<Arc<str>>,
}

impl Needs {
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.repositories.is_empty()
    }
}

pub fn needs<S: State>(kinds: &KindSet, state: &S, rules: &Rules, change: &Change<'_>) -> Result<Needs, S::Error> {
    let touched = change.paths().collect();
    let judge = Judge { kinds, state, rules, touched: &touched };
    let is_meant = |document: &Document<'_>| defines_a_kind(document) || defines_a_repository(document);
    let files = change.files.iter().filter(|file| may_matter(file)).copied().collect();
    let judged = judge_files(files, |document| is_meant(&document).then(|| judge.judge(document)).transpose())?;
    let repositories = narrowed(state, &judged.admitted)?.into_iter().map(|narrowed| narrowed.rules.repository);
    Ok(Needs {
        kinds: replaced(kinds, state, &judged.admitted)?.into_keys().collect(),
        repositories: repositories.collect(),
    })
}

fn may_matter(file: &File<'_>) -> bool {
    may_define(file.bytes) || may_have_word(file.bytes, REPOSITORY)
}

fn defines_a_repository(document: &Document<'_>) -> bool {
    document.object.kind() == REPOSITORY && document.object.api_version().starts_with("tidegate.dev/")
}

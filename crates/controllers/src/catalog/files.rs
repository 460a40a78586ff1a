//! Files, and what needs them.

use serde::{Deserialize, Serialize};

use super::facts::{Common, CommonFacts, Fields};
use super::table::{NamespaceId, Slot};
use super::{Catalog, CatalogKind, Touched};
use crate::report::{Condition, Report, listed};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct FileFacts<'f> {
    #[serde(borrow)]
    common: CommonFacts<'f>,
    has_uri: bool,
}

impl<'f> FileFacts<'f> {
    pub fn common(&self) -> &CommonFacts<'f> {
        &self.common
    }

    pub fn read(fields: Fields<'f>) -> Self {
        let has_uri = fields.text("/source/uri").is_some();
        Self { common: CommonFacts::read(CatalogKind::File, fields), has_uri }
    }
}

pub(crate) struct File {
    pub common: Common,
    has_uri: bool,
}

impl Catalog {
    pub(super) fn apply_file(&mut self, slot: Slot, facts: Option<FileFacts<'_>>, touched: &mut Touched) {
        let facts = facts.map(|FileFacts { common, has_uri }| File {
            common: Common { generation: common.generation, digest: common.digest, files: Box::default() },
            has_uri,
        });
        let exists = facts.is_some();
        let before = self.files.replace(slot, facts);
        if before.is_some() != exists {
            for kind in CatalogKind::ALL {
                touched.extend(kind, self.file_users[kind as usize].of(slot));
            }
        }
    }

    pub(super) fn plan_file(&self, slot: Slot) -> Option<Report> {
        let file = self.files.facts(slot)?;
        let message = "spec.source.uri is missing: say where the file is";
        let conditions =
            if file.has_uri { vec![] } else { vec![Condition::fails("Ready", "SourceIncomplete", message)] };
        Some(Report::new(file.common.generation, conditions, None))
    }

    pub(super) fn file_facts(&self, slot: Slot) -> Option<FileFacts<'_>> {
        let file = self.files.facts(slot)?;
        Some(FileFacts { common: self.common_facts(&file.common), has_uri: file.has_uri })
    }

    pub(super) fn enter_common(
        &mut self,
        namespace: NamespaceId,
        kind: CatalogKind,
        slot: Slot,
        facts: &CommonFacts<'_>,
    ) -> Common {
        let mut files: Vec<Slot> = facts.files.iter().map(|name| self.files.refer(namespace, name)).collect();
        files.sort();
        for file in &files {
            self.file_users[kind as usize].insert(*file, slot);
        }
        Common { generation: facts.generation, digest: facts.digest, files: files.into() }
    }

    pub(super) fn common_facts(&self, common: &Common) -> CommonFacts<'_> {
        let mut files: Vec<&str> = common.files.iter().map(|file| self.files.name(*file)).collect();
        files.sort_unstable();
        CommonFacts { generation: common.generation, digest: common.digest, files }
    }

    /// Call it after the facts of `slot` are replaced.
    pub(super) fn forget_common(&mut self, kind: CatalogKind, slot: Slot, before: Common) {
        for file in before.files {
            if !self.required_files(kind, slot).contains(&file) {
                self.file_users[kind as usize].remove(file, slot);
            }
            self.files.release(file);
        }
    }

    fn required_files(&self, kind: CatalogKind, slot: Slot) -> &[Slot] {
        self.common(kind, slot).map_or(&[], |common| &common.files)
    }

    /// A part of `Ready`: files have no condition of their own.
    pub(super) fn missing_files(&self, common: &Common) -> Option<Condition> {
        let mut missing: Vec<Slot> = common.files.iter().copied().filter(|file| !self.files.exists(*file)).collect();
        if missing.is_empty() {
            return None;
        }
        missing.dedup();
        let mut names: Vec<&str> = missing.into_iter().map(|file| self.files.name(file)).collect();
        names.sort_unstable();
        let message = format!(
            "files that spec.media names do not exist in this namespace: {}; add them, or say fileRef.optional: true",
            listed(names)
        );
        Some(Condition::fails("Ready", "FileNotFound", message))
    }
}

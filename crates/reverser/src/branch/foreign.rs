//! What others did to our folders.
//!
//! Anybody who may push can change a file of ours, take a commit out of the
//! branch, or delete the branch and make it again. A push that is planned again
//! on what is there restores what it carries and no more, so a folder whose
//! files are not as they were left has to be compared with the cluster, whole.

use std::collections::BTreeMap;

use tidegate_git::{Draft, DraftError, FolderState};

use super::destination::BaseFolder;
use super::handle::DestinationId;
use super::plan::LEVELS_MAX;
use super::worker::Destinations;

/// Version, resource and the file: no object is higher.
const LEVELS_MIN: usize = 3;

/// Each destination's folder as it was left.
#[derive(Default)]
pub(super) struct Folders(BTreeMap<DestinationId, (BaseFolder, FolderState)>);

impl Folders {
    /// They are as the draft has them.
    pub fn leave(&mut self, draft: &mut Draft, destinations: &Destinations) -> Result<(), DraftError> {
        let mut left = BTreeMap::new();
        for (id, destination) in destinations.iter() {
            let folder = &destination.base_folder;
            left.insert(id.clone(), (folder.clone(), draft.folder(&folder.join(""))?));
        }
        self.0 = left;
        Ok(())
    }

    /// Those that were left otherwise than the draft has them, in a file that
    /// may be an object's; told once.
    pub fn find(&mut self, draft: &mut Draft, destinations: &Destinations) -> Result<Vec<DestinationId>, DraftError> {
        let before = std::mem::take(&mut self.0);
        self.leave(draft, destinations)?;
        let mut found = Vec::new();
        for (id, (folder, now)) in &self.0 {
            let Some((_, left)) = before.get(id).filter(|(of, left)| of == folder && left != now) else { continue };
            // What it was may be gone from the clone: then nobody can say.
            if draft.is_changed(*left, *now, LEVELS_MAX, is_of_object).unwrap_or(true) {
                found.push(id.clone());
            }
        }
        Ok(found)
    }
}

fn is_of_object(path: &str) -> bool {
    path.ends_with(".yaml") && path.split('/').count() >= LEVELS_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_files_may_be_an_objects() {
        for (path, expected) in [
            ("v1/namespaces/a.yaml", true),
            ("apps/v1/deployments/shop/web.yaml", true),
            ("kustomization.yaml", false),
            ("overlays/prod.yaml", false),
            ("v1/configmaps/README.md", false),
        ] {
            assert_eq!(is_of_object(path), expected, "{path}");
        }
    }
}

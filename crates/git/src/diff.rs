//! The difference of two trees, as `git diff-tree -z --raw` writes it.

use crate::repository::ObjectId;

/// One path whose entry differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// As git has it: names need not be UTF-8.
    pub path: Vec<u8>,
    pub old: Option<Side>,
    pub new: Option<Side>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    pub id: ObjectId,
    pub kind: EntryKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    File,
    Symlink,
    Submodule,
}

/// `:100644 100644 <old> <new> M\0path\0`, any number of times.
pub(crate) fn parse(output: &[u8]) -> Option<Vec<Changed>> {
    let mut fields = output.split(|byte| *byte == 0);
    let mut changes = Vec::new();
    loop {
        let head = fields.next()?;
        if head.is_empty() {
            return Some(changes);
        }
        let mut words = std::str::from_utf8(head).ok()?.strip_prefix(':')?.split(' ');
        let (old_mode, new_mode) = (words.next()?, words.next()?);
        let (old_id, new_id) = (words.next()?, words.next()?);
        let path = fields.next()?.to_vec();
        changes.push(Changed { path, old: side(old_mode, old_id)?, new: side(new_mode, new_id)? });
    }
}

/// The outer `None` is a line that we do not understand.
fn side(mode: &str, id: &str) -> Option<Option<Side>> {
    let kind = match mode {
        "000000" => return Some(None),
        "120000" => EntryKind::Symlink,
        "160000" => EntryKind::Submodule,
        mode if mode.starts_with("100") => EntryKind::File,
        _ => return None,
    };
    Some(Some(Side { id: ObjectId::parse(id)?, kind }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";
    const ZERO: &str = "0000000000000000000000000000000000000000";

    /// A path, and what it was and is.
    type Row<'r> = (&'r str, Option<EntryKind>, Option<EntryKind>);

    fn check(output: &str, expected: Option<&[Row<'_>]>) {
        let changes = parse(output.as_bytes());
        let kind = |side: &Option<Side>| side.as_ref().map(|side| side.kind);
        let row = |change: &Changed| {
            (String::from_utf8_lossy(&change.path).into_owned(), kind(&change.old), kind(&change.new))
        };
        let rows: Option<Vec<_>> = changes.map(|changes| changes.iter().map(row).collect());
        let owned = |(path, old, new): &Row<'_>| ((*path).to_owned(), *old, *new);
        assert_eq!(rows, expected.map(|rows| rows.iter().map(owned).collect()), "{output:?}");
    }

    #[test]
    fn every_kind_of_line() {
        use EntryKind::{File, Submodule, Symlink};
        check("", Some(&[]));
        check(&format!(":000000 100644 {ZERO} {A} A\0a b\n.yaml\0"), Some(&[("a b\n.yaml", None, Some(File))]));
        check(&format!(":100755 000000 {A} {ZERO} D\0a\0"), Some(&[("a", Some(File), None)]));
        check(&format!(":100644 120000 {A} {B} T\0a\0"), Some(&[("a", Some(File), Some(Symlink))]));
        let two = format!(":000000 160000 {ZERO} {A} A\0a\0:100644 100644 {A} {B} M\0b\0");
        check(&two, Some(&[("a", None, Some(Submodule)), ("b", Some(File), Some(File))]));
    }

    #[test]
    fn what_is_no_difference() {
        for output in ["x\0a\0", ":100644\0a\0", ":100644 100644 1 2 M\0a\0", ":040000 000000 1 2 M\0a\0"] {
            check(output, None);
        }
        check(&format!(":100644 100644 {A} {B} M"), None);
    }
}

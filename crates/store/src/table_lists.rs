//! The engine's lists of files, compared with their checksums before the
//! engine reads them.
//!
//! A table is a folder. Its file `current` names the list that is in force
//! (`v7`) and that list's checksum, which fjall writes and does not compare: a
//! list with a changed byte makes it panic, in a way that ends the process.
//!
//! Invariant: nothing is changed here. What is absent is not judged: fjall
//! knows which folders are those of tables that never were, or are no more.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

/// In `current`: the list's number, its checksum, and the sort of checksum.
const CURRENT_BYTES: usize = 8 + 16 + 1;
const XXH3: u8 = 0;

/// A file that is not what was written, if there is one.
pub fn find_damaged(engine: &Path) -> io::Result<Option<PathBuf>> {
    let tables = match fs::read_dir(engine.join("keyspaces")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        tables => tables?,
    };
    for table in tables {
        if let Some(damaged) = damaged_in(&table?.path())? {
            return Ok(Some(damaged));
        }
    }
    Ok(None)
}

fn damaged_in(table: &Path) -> io::Result<Option<PathBuf>> {
    let current = table.join("current");
    let Some(named) = read_if_there(&current)? else { return Ok(None) };
    let Some((number, checksum)) = decode(&named) else { return Ok(Some(current)) };
    let list = table.join(format!("v{number}"));
    let Some(bytes) = read_if_there(&list)? else { return Ok(None) };
    Ok((xxh3_128(&bytes) != checksum).then_some(list))
}

fn decode(current: &[u8]) -> Option<(u64, u128)> {
    let bytes: &[u8; CURRENT_BYTES] = current.try_into().ok()?;
    let (number, rest) = bytes.split_first_chunk()?;
    let (checksum, sort) = rest.split_first_chunk()?;
    (sort == [XXH3]).then(|| (u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
}

fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current(number: u64, list: &[u8], sort: u8) -> Vec<u8> {
        let parts = [&number.to_le_bytes()[..], &xxh3_128(list).to_le_bytes(), &[sort]];
        parts.concat()
    }

    #[test]
    fn what_is_damaged() {
        for (case, current, list, damaged) in [
            ("whole", Some(current(3, b"list", XXH3)), Some("list"), None),
            ("a changed list", Some(current(3, b"list", XXH3)), Some("lost"), Some("v3")),
            ("a changed name", Some(current(4, b"list", XXH3)), Some("list"), None),
            ("another sort of sum", Some(current(3, b"list", 1)), Some("list"), Some("current")),
            ("a short file", Some(b"abc".to_vec()), Some("list"), Some("current")),
            ("no list", Some(current(3, b"list", XXH3)), None, None),
            ("nothing", None, None, None),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let table = dir.path().join("keyspaces/1");
            fs::create_dir_all(&table).unwrap();
            fs::write(dir.path().join("keyspaces/stray"), "").unwrap();
            let files = [("current", current), ("v3", list.map(Into::into))];
            for (name, bytes) in files.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))) {
                fs::write(table.join(name), bytes).unwrap();
            }
            assert_eq!(find_damaged(dir.path()).unwrap(), damaged.map(|name| table.join(name)), "{case}");
        }
    }
}

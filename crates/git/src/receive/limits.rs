//! What the objects of a push may cost, by the bytes that it has.
//!
//! A few bytes can stand for any amount: zlib makes a thousand of one, and a
//! difference of seven bytes copies 16 MiB. What is made of them is bounded in
//! proportion to what was sent, with room for how folders grow: 10,000 commits
//! that each change one file of 100,000 in one folder are 7 MB to send, and
//! 40 GiB of folders to hash.

/// However small the push: a folder of a million files is 40 MiB, and looked at
/// three times for one commit.
const UNPACKED_BYTES_MIN: u64 = 4 << 30;
/// For each byte that is sent.
const UNPACKED_BYTES_PER_BYTE: u64 = 32 << 10;
/// However large. It takes git ten minutes, which is all that a push has.
const UNPACKED_BYTES_MAX: u64 = 128 << 30;
/// That git unpacks and hashes on one slow core; twice that is common.
const GIT_BYTES_PER_SECOND: u64 = 128 << 20;

/// Of folders that others are made of: eight of the largest that is unpacked.
const HELD_BYTES_MAX: usize = 512 << 20;
/// To find what is here: one for an object, and one for each that it is stored
/// as a difference from. A million files that are here 250 deep are 125 million;
/// the most takes a minute.
const STEPS_MAX: u64 = 1_000_000_000;

/// What finding that a push is whole may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of commits, folders and tags: that are made, and that they are made from.
    pub unpacked_bytes_max: u64,
    /// Of them, at once in memory.
    pub held_bytes_max: usize,
    pub steps_max: u64,
}

impl Limits {
    /// Of a push of `sent` bytes.
    pub fn of(sent: u64) -> Self {
        let unpacked_bytes_max = unpacked_bytes_max(sent);
        Self { unpacked_bytes_max, held_bytes_max: HELD_BYTES_MAX, steps_max: STEPS_MAX }
    }
}

/// What a push of `sent` bytes may unpack to.
fn unpacked_bytes_max(sent: u64) -> u64 {
    let in_proportion = sent.saturating_mul(UNPACKED_BYTES_PER_BYTE).saturating_add(UNPACKED_BYTES_MIN);
    in_proportion.min(UNPACKED_BYTES_MAX)
}

/// Of processor time for git, on however many cores: 32 to begin with, and a
/// quarter of a second for each KiB.
pub fn git_seconds_max(sent: u64) -> u64 {
    unpacked_bytes_max(sent) / GIT_BYTES_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_proportion() {
        for (sent, gib, seconds) in
            [(0, 4, 32), (1 << 10, 4, 32), (1 << 20, 36, 288), (7 << 20, 128, 1024), (u64::MAX, 128, 1024)]
        {
            assert_eq!((unpacked_bytes_max(sent) >> 30, git_seconds_max(sent)), (gib, seconds), "{sent}");
        }
    }
}

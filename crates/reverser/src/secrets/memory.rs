//! Which plaintext each encrypted file was made of, as far as this process
//! wrote or saw it.

use std::collections::HashMap;

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Keyed hashes under a key that dies with the process: they are of no use to
/// anybody else. Some 200 bytes for each Secret.
pub(crate) struct SecretMemory {
    key: [u8; 32],
    seen: HashMap<String, Seen>,
}

#[derive(PartialEq)]
struct Seen {
    plaintext: [u8; 32],
    /// The encrypted file that was made of it. A file that never reached the
    /// branch does not answer for the one that is there.
    checksum: String,
}

impl Default for SecretMemory {
    fn default() -> Self {
        Self { key: rand::random(), seen: HashMap::new() }
    }
}

impl SecretMemory {
    /// Whether the file with that checksum holds this plaintext.
    pub fn knows(&self, path: &str, plaintext: &[u8], checksum: &str) -> bool {
        let seen = self.seen.get(path).filter(|seen| seen.checksum == checksum);
        seen.is_some_and(|seen| seen.plaintext == self.hash(plaintext))
    }

    pub fn note(&mut self, path: &str, plaintext: &[u8], checksum: String) {
        let plaintext = self.hash(plaintext);
        self.seen.insert(path.to_owned(), Seen { plaintext, checksum });
    }

    pub fn forget(&mut self, path: &str) {
        self.seen.remove(path);
    }

    fn hash(&self, plaintext: &[u8]) -> [u8; 32] {
        match Hmac::<Sha256>::new_from_slice(&self.key) {
            Ok(mut mac) => {
                mac.update(plaintext);
                mac.finalize().into_bytes().into()
            }
            // HMAC takes keys of every length; a random answer knows nothing.
            Err(_) => rand::random(),
        }
    }
}

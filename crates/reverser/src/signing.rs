//! Commits signed with an SSH key, as `git verify-commit` checks them.

use ssh_key::{HashAlg, LineEnding, PrivateKey};
use tidegate_git::{SignError, Signer};

/// What git calls the purpose of a signature.
const NAMESPACE: &str = "git";

/// A private key that is not shown.
pub struct SigningKey(PrivateKey);

#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    #[error("it is not an OpenSSH private key: make one with `ssh-keygen -t ed25519`")]
    Malformed(#[source] ssh_key::Error),
    #[error("the key has a passphrase: add it to the secret as `passphrase`")]
    Locked,
    #[error("the passphrase does not open the key")]
    Passphrase,
}

impl SigningKey {
    pub fn parse(openssh: &str, passphrase: Option<&str>) -> Result<Self, SigningKeyError> {
        let key = PrivateKey::from_openssh(openssh).map_err(SigningKeyError::Malformed)?;
        match (key.is_encrypted(), passphrase) {
            (false, _) => Ok(Self(key)),
            (true, None) => Err(SigningKeyError::Locked),
            (true, Some(passphrase)) => key.decrypt(passphrase).map(Self).map_err(|_| SigningKeyError::Passphrase),
        }
    }
}

impl Signer for SigningKey {
    fn sign(&self, text: &[u8]) -> Result<String, SignError> {
        let signed = self.0.sign(NAMESPACE, HashAlg::Sha512, text).and_then(|signed| signed.to_pem(LineEnding::LF));
        signed.map_err(|error| SignError(error.to_string()))
    }
}

//! Commits signed with an SSH key, as `git verify-commit` checks them.

use rsa::BigUint;
use rsa::signature::{SignatureEncoding, Signer as _};
use sha2::Sha512;
use ssh_key::private::{KeypairData, RsaKeypair};
use ssh_key::{Algorithm, HashAlg, LineEnding, PrivateKey, Signature, SshSig};
use tidegate_git::{SignError, Signer};

/// What git calls the purpose of a signature.
const NAMESPACE: &str = "git";
const HASH: HashAlg = HashAlg::Sha512;

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
    #[error(
        "commits cannot be signed with a key of {0}: make one with `ssh-keygen -t ed25519`; RSA and ECDSA P-256 serve, too"
    )]
    Unsupported(String),
}

impl SigningKey {
    /// A key that does not sign is refused here, before a commit waits for it.
    pub fn parse(openssh: &str, passphrase: Option<&str>) -> Result<Self, SigningKeyError> {
        let key = PrivateKey::from_openssh(openssh).map_err(SigningKeyError::Malformed)?;
        let key = match (key.is_encrypted(), passphrase) {
            (false, _) => Self(key),
            (true, None) => return Err(SigningKeyError::Locked),
            (true, Some(passphrase)) => key.decrypt(passphrase).map(Self).map_err(|_| SigningKeyError::Passphrase)?,
        };
        let algorithm = key.0.algorithm().to_string();
        key.sign(b"").map(|_| key).map_err(|_| SigningKeyError::Unsupported(algorithm))
    }
}

impl Signer for SigningKey {
    fn sign(&self, text: &[u8]) -> Result<String, SignError> {
        let signed = match self.0.key_data() {
            KeypairData::Rsa(pair) => sign_rsa(&self.0, pair, text),
            _ => self.0.sign(NAMESPACE, HASH, text),
        };
        let signed = signed.and_then(|signed| signed.to_pem(LineEnding::LF));
        signed.map_err(|error| SignError(error.to_string()))
    }
}

/// By hand: ssh-key 0.6 takes one of the two primes for both, so that its own
/// RSA signatures always fail.
fn sign_rsa(key: &PrivateKey, pair: &RsaKeypair, text: &[u8]) -> Result<SshSig, ssh_key::Error> {
    let number = |number: &ssh_key::Mpint| BigUint::try_from(number);
    let primes = vec![number(&pair.private.p)?, number(&pair.private.q)?];
    let (n, e, d) = (number(&pair.public.n)?, number(&pair.public.e)?, number(&pair.private.d)?);
    let private = rsa::RsaPrivateKey::from_components(n, e, d, primes)?;
    let signed = SshSig::signed_data(NAMESPACE, HASH, text)?;
    let signature = rsa::pkcs1v15::SigningKey::<Sha512>::new(private).try_sign(&signed)?;
    let signature = Signature::new(Algorithm::Rsa { hash: Some(HASH) }, signature.to_vec())?;
    SshSig::new(key.public_key().key_data().clone(), NAMESPACE, HASH, signature)
}

//! Bearer tokens: the admin's, and those of service accounts.
//!
//! Invariant: a token is accepted only if this data directory's key signed it
//! with HS256, it has not expired, and its account exists with the same uid
//! and has not revoked it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use rand::TryRngCore as _;
use rand::rngs::OsRng;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::accounts::Accounts;
use super::error::{AuthError, IssueError, SetupError};
use super::role::service_account_user;
use super::secret_file;
use super::session::Session;
use super::{Clock, Identity};

pub const SIGNING_KEY_FILE: &str = "signing.key";
pub const ADMIN_TOKEN_FILE: &str = "admin.token";

/// Shorter than this, a token dies before it is pasted.
pub const TOKEN_TTL_MIN: Duration = Duration::from_secs(60);
pub const TOKEN_TTL_DEFAULT: Duration = Duration::from_secs(24 * 3600);
pub const TOKEN_TTL_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Ours have about 500 bytes: two names of at most 253, a uid, an id, and the
/// signature, in base64. Nothing longer is decoded.
pub const TOKEN_BYTES_MAX: usize = 2048;

const SECRET_BYTES: usize = 32;
const ADMIN_PREFIX: &str = "tga_";
const ISSUER: &str = "tidegate";
const SUBJECT_PREFIX: &str = "system:serviceaccount:";

pub struct Tokens {
    signing: EncodingKey,
    verifying: DecodingKey,
    validation: Validation,
    admin: Vec<u8>,
    admin_path: PathBuf,
    clock: Clock,
}

/// A new token; `secret` is shown once and kept nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedToken {
    pub secret: String,
    pub id: String,
    pub expires_at: DateTime<Utc>,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: String,
    /// The ServiceAccount's.
    uid: String,
    jti: String,
    iat: i64,
    exp: i64,
}

impl Tokens {
    /// Reads the signing key and the admin token, or makes what is missing:
    /// deleting a file and starting again revokes what depended on it.
    pub fn open(data_dir: &Path, clock: Clock) -> Result<Self, SetupError> {
        let key = secret_file::read_or_create(data_dir, SIGNING_KEY_FILE, || random_bytes().to_vec())?;
        check_signing_key(&data_dir.join(SIGNING_KEY_FILE), &key)?;
        let admin_path = data_dir.join(ADMIN_TOKEN_FILE);
        let admin = secret_file::read_or_create(data_dir, ADMIN_TOKEN_FILE, new_admin_token)?.trim_ascii().to_vec();
        check_admin_token(&admin_path, &admin)?;
        // Another crate may switch on a second provider; then ours must be
        // named, and it does not matter who names it first.
        let _ = jsonwebtoken::crypto::rust_crypto::DEFAULT_PROVIDER.install_default();
        let (signing, verifying) = (EncodingKey::from_secret(&key), DecodingKey::from_secret(&key));
        Ok(Self { signing, verifying, validation: validation(), admin, admin_path, clock })
    }

    pub fn admin_token_path(&self) -> &Path {
        &self.admin_path
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// A token that speaks for the account until `ttl` has passed.
    pub fn issue(
        &self,
        accounts: &impl Accounts,
        namespace: &str,
        name: &str,
        ttl: Duration,
    ) -> Result<IssuedToken, IssueError> {
        check_ttl(ttl)?;
        let no_account = || IssueError::NoAccount { namespace: namespace.into(), name: name.into() };
        let account = accounts.account(namespace, name).ok_or_else(no_account)?;
        let issued_at = self.clock.now().timestamp();
        let claims = Claims {
            iss: ISSUER.into(),
            sub: service_account_user(namespace, name),
            aud: ISSUER.into(),
            uid: account.uid.to_string(),
            jti: uuid::Uuid::new_v4().to_string(),
            iat: issued_at,
            exp: issued_at + ttl.as_secs() as i64,
        };
        self.sign(claims)
    }

    fn sign(&self, claims: Claims) -> Result<IssuedToken, IssueError> {
        let failed = |error: jsonwebtoken::errors::Error| IssueError::Signing { reason: error.to_string() };
        let secret = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.signing).map_err(failed)?;
        let expires_at = DateTime::from_timestamp(claims.exp, 0).expect("a year from now is a date");
        Ok(IssuedToken { secret, id: claims.jti, expires_at })
    }

    /// Whose token it is, if it is good now.
    pub fn authenticate(&self, accounts: &impl Accounts, token: &str) -> Result<Session, AuthError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(AuthError::Invalid);
        }
        if self.admin.ct_eq(token.as_bytes()).into() {
            return Ok(Session::admin());
        }
        let session = self.verify(token).ok_or(AuthError::Invalid)?;
        self.check(accounts, &session)?;
        Ok(session)
    }

    /// Whether the session's token is still good.
    pub fn check(&self, accounts: &impl Accounts, session: &Session) -> Result<(), AuthError> {
        session.check(accounts, self.clock.now())
    }

    /// The claims of a token of ours. Why a forged one fails is nobody's
    /// business.
    fn verify(&self, token: &str) -> Option<Session> {
        let claims = jsonwebtoken::decode::<Claims>(token, &self.verifying, &self.validation).ok()?.claims;
        let (namespace, name) = claims.sub.strip_prefix(SUBJECT_PREFIX)?.split_once(':')?;
        let identity = Identity {
            uid: Some(claims.uid.into()),
            token_id: Some(claims.jti.into()),
            expires_at: Some(DateTime::from_timestamp(claims.exp, 0)?),
            ..Identity::service_account(namespace, name)
        };
        Some(Session::service_account(namespace, name, identity))
    }
}

/// Expiry is judged by [`Session::check`], by the injected clock and without
/// leeway: for a request as for an open watch.
fn validation() -> Validation {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[ISSUER]);
    validation.set_required_spec_claims(&["iss", "sub", "aud", "exp"]);
    validation.validate_exp = false;
    validation
}

fn check_ttl(ttl: Duration) -> Result<(), IssueError> {
    if (TOKEN_TTL_MIN..=TOKEN_TTL_MAX).contains(&ttl) {
        return Ok(());
    }
    Err(IssueError::Lifetime {
        asked_seconds: ttl.as_secs(),
        min_seconds: TOKEN_TTL_MIN.as_secs(),
        max_seconds: TOKEN_TTL_MAX.as_secs(),
    })
}

fn check_signing_key(path: &Path, key: &[u8]) -> Result<(), SetupError> {
    if key.len() == SECRET_BYTES {
        return Ok(());
    }
    let remedy = "restore it, or delete it to make a new one, which revokes all service-account tokens";
    Err(SetupError::Damaged { path: path.into(), reason: "not 32 bytes", remedy })
}

fn check_admin_token(path: &Path, token: &[u8]) -> Result<(), SetupError> {
    let body = token.strip_prefix(ADMIN_PREFIX.as_bytes());
    if body.and_then(|body| URL_SAFE_NO_PAD.decode(body).ok()).is_some_and(|secret| secret.len() == SECRET_BYTES) {
        return Ok(());
    }
    let remedy = "delete it to make a new one at the next start";
    Err(SetupError::Damaged { path: path.into(), reason: "not an admin token", remedy })
}

fn new_admin_token() -> Vec<u8> {
    format!("{ADMIN_PREFIX}{}\n", URL_SAFE_NO_PAD.encode(random_bytes())).into_bytes()
}

fn random_bytes() -> [u8; SECRET_BYTES] {
    let mut bytes = [0; SECRET_BYTES];
    OsRng.try_fill_bytes(&mut bytes).expect("the system's random source works");
    bytes
}

/// As [`bearer_token`], or the password of Basic credentials: git asks its
/// user for a name too, which says nothing here.
pub fn basic_or_bearer_token(header: Option<&str>) -> Result<String, AuthError> {
    use base64::Engine as _;
    let encoded = header.and_then(|header| header.split_once(' '));
    let Some((_, encoded)) = encoded.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic")) else {
        return bearer_token(header).map(str::to_owned);
    };
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded.trim()).ok();
    let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(AuthError::Invalid)?;
    let (_, token) = decoded.split_once(':').ok_or(AuthError::Invalid)?;
    Ok(token.to_owned())
}

/// The token of an `Authorization` header.
pub fn bearer_token(header: Option<&str>) -> Result<&str, AuthError> {
    let header = header.ok_or(AuthError::Missing)?;
    match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        _ => Err(AuthError::NotBearer),
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("admin_path", &self.admin_path).finish_non_exhaustive()
    }
}

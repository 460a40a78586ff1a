//! Every way in which a token must not be accepted, and the files behind it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::DateTime;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_model::{GroupResource, Object, ObjectKey};

use super::*;

const NOW: i64 = 1_900_000_000;

struct Fixture {
    directory: TempDir,
    now: Arc<AtomicI64>,
    tokens: Tokens,
    accounts: AccountIndex,
}

impl Fixture {
    fn new() -> Self {
        let (directory, now) = (TempDir::new().unwrap(), Arc::new(AtomicI64::new(NOW)));
        let tokens = open(directory.path(), &now).unwrap();
        let mut fixture = Self { directory, now, tokens, accounts: AccountIndex::default() };
        fixture.set_account(Some(json!({"uid": "uid-1"})), json!(null));
        fixture
    }

    fn set_account(&mut self, metadata: Option<Value>, status: Value) {
        let key = ObjectKey::new(GroupResource::new("", "serviceaccounts"), Some("shop"), "bot");
        let object = metadata.map(|mut metadata| {
            metadata["name"] = json!("bot");
            let root = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "status": status});
            Object::from_value(root).unwrap()
        });
        self.accounts.apply(&key, object.as_ref());
    }

    fn issue(&self) -> IssuedToken {
        self.tokens.issue(&self.accounts, "shop", "bot", TOKEN_TTL_DEFAULT).unwrap()
    }

    fn authenticate(&self, token: &str) -> Result<Session, AuthError> {
        self.tokens.authenticate(&self.accounts, token)
    }

    /// The claims of a good token with `changes` (null takes a claim away),
    /// signed with the real key.
    fn forge(&self, algorithm: Algorithm, changes: Value) -> String {
        let mut claims = json!({
            "iss": "tidegate", "aud": "tidegate", "sub": "system:serviceaccount:shop:bot",
            "uid": "uid-1", "jti": "id-1", "iat": NOW, "exp": NOW + 60,
        });
        let claims = claims.as_object_mut().unwrap();
        claims.extend(changes.as_object().unwrap().clone());
        claims.retain(|_, value| !value.is_null());
        let key = fs::read(self.directory.path().join(SIGNING_KEY_FILE)).unwrap();
        jsonwebtoken::encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(&key)).unwrap()
    }
}

fn open(directory: &Path, now: &Arc<AtomicI64>) -> Result<Tokens, SetupError> {
    let now = now.clone();
    Tokens::open(directory, Clock::new(move || DateTime::from_timestamp(now.load(Ordering::SeqCst), 0).unwrap()))
}

#[test]
fn an_issued_token_speaks_for_its_account() {
    let fixture = Fixture::new();
    let issued = fixture.issue();
    let session = fixture.authenticate(&issued.secret).unwrap();
    let identity = session.identity();
    assert_eq!(&*identity.user, "system:serviceaccount:shop:bot");
    let groups: Vec<_> = identity.groups.iter().map(|group| &**group).collect();
    assert_eq!(groups, ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]);
    assert_eq!(identity.token_id.as_deref(), Some(&*issued.id));
    assert_eq!(identity.expires_at.unwrap().timestamp(), NOW + 24 * 3600);
}

#[test]
fn expiry_revocation_and_a_new_account_end_a_token() {
    let mut fixture = Fixture::new();
    let issued = fixture.issue();
    let gone = Err(AuthError::AccountGone { namespace: "shop".into(), name: "bot".into() });

    fixture.set_account(Some(json!({"uid": "uid-2"})), json!(null));
    assert_eq!(fixture.authenticate(&issued.secret), gone, "another uid");
    fixture.set_account(Some(json!({"uid": "uid-1", "deletionTimestamp": "2030-01-01T00:00:00Z"})), json!(null));
    assert_eq!(fixture.authenticate(&issued.secret), gone, "being deleted");
    fixture.set_account(None, json!(null));
    assert_eq!(fixture.authenticate(&issued.secret), gone, "deleted");

    let revoked = json!({"revokedTokens": [{"id": "other"}, {"id": issued.id, "expiresAt": "2030-01-01T00:00:00Z"}]});
    fixture.set_account(Some(json!({"uid": "uid-1"})), revoked);
    assert_eq!(fixture.authenticate(&issued.secret), Err(AuthError::Revoked { token_id: issued.id.clone() }));
    fixture.set_account(Some(json!({"uid": "uid-1"})), json!({"revokedTokens": [{"id": "other"}, 7]}));
    assert!(fixture.authenticate(&issued.secret).is_ok());

    fixture.now.store(NOW + 24 * 3600 - 1, Ordering::SeqCst);
    assert!(fixture.authenticate(&issued.secret).is_ok());
    fixture.now.store(NOW + 24 * 3600, Ordering::SeqCst);
    let error = fixture.authenticate(&issued.secret).unwrap_err();
    assert_eq!(error, AuthError::Expired { at: issued.expires_at });
    assert_eq!(error.code(), "UNAUTHENTICATED");
}

#[test]
fn what_we_did_not_sign_is_refused() {
    let fixture = Fixture::new();
    let good = fixture.forge(Algorithm::HS256, json!({}));
    assert!(fixture.authenticate(&good).is_ok(), "the forger's baseline");
    let (head, rest) = good.split_once('.').unwrap();
    let (claims, signature) = rest.split_once('.').unwrap();
    let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let other_claims = encode(json!({"sub": "system:serviceaccount:shop:root"}));
    let stranger = Fixture::new();
    let table = [
        ("tampered claims", format!("{head}.{other_claims}.{signature}")),
        ("tampered signature", format!("{head}.{claims}.{}", signature.chars().rev().collect::<String>())),
        ("no signature", format!("{head}.{claims}.")),
        ("alg none", format!("{}.{claims}.", encode(json!({"alg": "none", "typ": "JWT"})))),
        ("alg none, signed", format!("{}.{claims}.{signature}", encode(json!({"alg": "none"})))),
        ("alg RS256", format!("{}.{claims}.{signature}", encode(json!({"alg": "RS256"})))),
        ("alg HS512", fixture.forge(Algorithm::HS512, json!({}))),
        ("another key", stranger.issue().secret),
        ("issuer", fixture.forge(Algorithm::HS256, json!({"iss": "kubernetes"}))),
        ("audience", fixture.forge(Algorithm::HS256, json!({"aud": "other"}))),
        ("no expiry", fixture.forge(Algorithm::HS256, json!({"exp": null}))),
        ("endless", fixture.forge(Algorithm::HS256, json!({"exp": i64::MAX}))),
        ("no uid", fixture.forge(Algorithm::HS256, json!({"uid": null}))),
        ("no id", fixture.forge(Algorithm::HS256, json!({"jti": null}))),
        ("another subject", fixture.forge(Algorithm::HS256, json!({"sub": "system:admin"}))),
        ("half a subject", fixture.forge(Algorithm::HS256, json!({"sub": "system:serviceaccount:shop"}))),
        ("empty", String::new()),
        ("garbage", "a.b.c".into()),
        ("dots", "...".into()),
        ("not ASCII", "ü.ü.ü".into()),
        ("admin prefix", "tga_".into()),
        ("huge", "a".repeat(10 << 20)),
        ("huge, signed", fixture.forge(Algorithm::HS256, json!({"x": "y".repeat(TOKEN_BYTES_MAX)}))),
    ];
    for (what, token) in table {
        let error = fixture.authenticate(&token).unwrap_err();
        assert_eq!(error, AuthError::Invalid, "{what}");
        assert!(token.len() < 5 || !error.to_string().contains(&token), "{what} is repeated in the error");
    }
}

#[test]
fn a_lifetime_is_bounded_and_an_account_must_exist() {
    let fixture = Fixture::new();
    let issue = |name: &str, ttl: Duration| fixture.tokens.issue(&fixture.accounts, "shop", name, ttl);
    let second = Duration::from_secs(1);
    for (ttl, is_good) in [
        (TOKEN_TTL_MIN - second, false),
        (TOKEN_TTL_MIN, true),
        (TOKEN_TTL_MAX, true),
        (TOKEN_TTL_MAX + second, false),
        (Duration::MAX, false),
    ] {
        assert_eq!(issue("bot", ttl).is_ok(), is_good, "{ttl:?}");
    }
    assert!(matches!(issue("nobody", TOKEN_TTL_MIN), Err(IssueError::NoAccount { .. })));
}

#[test]
fn the_longest_names_fit_into_a_token() {
    let mut fixture = Fixture::new();
    let (namespace, name) = ("n".repeat(63), "a".repeat(253));
    let key = ObjectKey::new(GroupResource::new("", "serviceaccounts"), Some(&namespace), &name);
    let metadata = json!({"name": name, "uid": uuid::Uuid::new_v4().to_string()});
    let object = Object::from_value(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}));
    fixture.accounts.apply(&key, object.as_ref());
    let issued = fixture.tokens.issue(&fixture.accounts, &namespace, &name, TOKEN_TTL_MAX).unwrap();
    assert!(fixture.authenticate(&issued.secret).is_ok(), "{} bytes", issued.secret.len());
}

#[test]
fn the_files_are_made_once_and_for_their_owner_alone() {
    let fixture = Fixture::new();
    let path = |name| fixture.directory.path().join(name);
    for name in [SIGNING_KEY_FILE, ADMIN_TOKEN_FILE] {
        assert_eq!(fs::metadata(path(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(fs::read_dir(fixture.directory.path()).unwrap().count(), 2, "no temporary file stays");
    let admin = fs::read_to_string(path(ADMIN_TOKEN_FILE)).unwrap();
    assert!(admin.starts_with("tga_") && admin.ends_with('\n'), "a shell can `$(cat)` it");
    assert_eq!(fixture.authenticate(admin.trim()), Ok(Session::admin()));
    assert_eq!(fixture.authenticate(&admin.trim()[..20]), Err(AuthError::Invalid), "a part of it");

    // A second start keeps both; a crash in the middle leaves a file behind.
    let issued = fixture.issue();
    fs::write(path(".signing.key.new"), "half").unwrap();
    let again = open(fixture.directory.path(), &fixture.now).unwrap();
    assert!(again.authenticate(&fixture.accounts, admin.trim()).is_ok());
    assert!(again.authenticate(&fixture.accounts, &issued.secret).is_ok());

    // Deleting them revokes what depended on them.
    fs::remove_file(path(ADMIN_TOKEN_FILE)).unwrap();
    fs::remove_file(path(SIGNING_KEY_FILE)).unwrap();
    let renewed = open(fixture.directory.path(), &fixture.now).unwrap();
    assert_eq!(renewed.authenticate(&fixture.accounts, admin.trim()), Err(AuthError::Invalid));
    assert_eq!(renewed.authenticate(&fixture.accounts, &issued.secret), Err(AuthError::Invalid));
}

#[test]
fn loose_permissions_and_damage_refuse_to_start_with_the_remedy() {
    for name in [SIGNING_KEY_FILE, ADMIN_TOKEN_FILE] {
        let fixture = Fixture::new();
        let path = fixture.directory.path().join(name);
        let start = || open(fixture.directory.path(), &fixture.now).map(drop);
        for (mode, is_good) in
            [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o610, false), (0o700, false)]
        {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(start().is_ok(), is_good, "{name} {mode:o}");
        }
        let error = start().unwrap_err().to_string();
        assert!(error.contains(&format!("chmod 600 {}", path.display())), "{error}");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        for content in ["", "short", "tga_", "tga_AAAA", &"x".repeat(10_000)] {
            fs::write(&path, content).unwrap();
            let error = start().unwrap_err().to_string();
            assert!(error.contains("damaged") && error.contains("delete it"), "{error}");
        }
    }
    let missing = Tokens::open(Path::new("/nonexistent/tidegate"), Clock::system()).map(drop);
    assert!(missing.unwrap_err().to_string().contains("/nonexistent/tidegate"));
}

#[test]
fn the_authorization_header_is_a_bearer_token() {
    for (header, expected) in [
        (Some("Bearer abc"), Ok("abc")),
        (Some("bearer  abc "), Ok("abc")),
        (Some("Bearer "), Err(AuthError::NotBearer)),
        (Some("Bearer"), Err(AuthError::NotBearer)),
        (Some("Basic abc"), Err(AuthError::NotBearer)),
        (Some("abc"), Err(AuthError::NotBearer)),
        (None, Err(AuthError::Missing)),
    ] {
        assert_eq!(bearer_token(header), expected, "{header:?}");
    }
}

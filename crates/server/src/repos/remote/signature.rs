//! Whether a webhook's caller knows the shared secret.
//!
//! Invariant: how long the comparison takes tells nothing of the secret.

use axum::http::HeaderMap;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

const HUB_SIGNATURE: &str = "x-hub-signature-256";
const GITEA_SIGNATURES: [&str; 2] = ["x-gitea-signature", "x-forgejo-signature"];
const GITLAB_TOKEN: &str = "x-gitlab-token";

/// By the first of the known headers: GitHub, Gitea and Forgejo sign the body,
/// GitLab sends the secret.
pub fn is_signed(headers: &HeaderMap, body: &[u8], secret: &[u8]) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(signature) = text(HUB_SIGNATURE) {
        return signature.strip_prefix("sha256=").is_some_and(|hex| is_digest(hex, body, secret));
    }
    if let Some(hex) = GITEA_SIGNATURES.into_iter().find_map(text) {
        return is_digest(hex, body, secret);
    }
    headers.get(GITLAB_TOKEN).is_some_and(|token| bool::from(token.as_bytes().ct_eq(secret)))
}

fn is_digest(hex: &str, body: &[u8], secret: &[u8]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return false };
    mac.update(body);
    decode_hex(hex).is_some_and(|given| mac.verify_slice(&given).is_ok())
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
    let pairs = digits.filter(|digits| digits.len() % 2 == 0)?;
    pairs.chunks_exact(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As GitHub's documentation has it.
    const SECRET: &[u8] = b"It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    const DIGEST: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn check(name: &'static str, value: &str) -> bool {
        let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
        is_signed(&headers, BODY, SECRET)
    }

    #[test]
    fn who_knows_the_secret() {
        assert!(check(HUB_SIGNATURE, &format!("sha256={DIGEST}")));
        assert!(check("x-gitea-signature", DIGEST));
        assert!(check("x-forgejo-signature", DIGEST));
        assert!(check(GITLAB_TOKEN, "It's a Secret to Everybody"));
    }

    #[test]
    fn who_does_not() {
        for (name, value) in [
            (HUB_SIGNATURE, DIGEST.to_owned()),
            (HUB_SIGNATURE, format!("sha256={}", DIGEST.replace('7', "8"))),
            (HUB_SIGNATURE, format!("sha256={}", &DIGEST[..62])),
            (HUB_SIGNATURE, "sha256=".to_owned()),
            (HUB_SIGNATURE, "sha1=0".to_owned()),
            ("x-gitea-signature", "zz".to_owned()),
            (GITLAB_TOKEN, "It's a Secret".to_owned()),
            (GITLAB_TOKEN, String::new()),
            ("x-other", DIGEST.to_owned()),
        ] {
            assert!(!check(name, &value), "{name}: {value}");
        }
        // A wrong signature is not forgiven for a right token.
        let headers = HeaderMap::from_iter([
            (HUB_SIGNATURE.parse().unwrap(), "sha256=00".parse().unwrap()),
            (GITLAB_TOKEN.parse().unwrap(), "It's a Secret to Everybody".parse().unwrap()),
        ]);
        assert!(!is_signed(&headers, BODY, SECRET));
    }
}

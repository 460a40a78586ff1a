//! A Secret in the format of the `sops` program, for recipients of age.
//!
//! Names, labels and annotations stay readable; each value of `data` is
//! encrypted by itself under a key that is made for the file. The first line
//! says which state of the Secret it was made of, so that an unchanged one is
//! recognized without any key, and a checksum of what follows, so that a file
//! that somebody edited is not.

use std::collections::BTreeSet;
use std::io::Write;

use aes_gcm::aead::consts::U32;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, Nonce};
use age::armor::{ArmoredWriter, Format};
use age::x25519::Recipient;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};
use tidegate_model::{timestamp, yaml};

use super::SecretError;
use crate::change::Version;

const MARK: &str = "# tidegate";
/// The oldest format that has what is used here.
const SOPS_VERSION: &str = "3.8.0";
const ENCRYPTED: [&str; 2] = ["data", "stringData"];
const ENCRYPTED_REGEX: &str = "^(data|stringData)$";
const TAG_BYTES: usize = 16;

/// Sops has nonces of 32 bytes.
type Cipher = AesGcm<Aes256, U32>;

pub struct Sops {
    recipients: Vec<Recipient>,
    names: BTreeSet<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecipientError {
    #[error("`{0}` is not a recipient of age: it begins with `age1`, as `age-keygen` prints it")]
    Malformed(String),
    #[error("there are no recipients: nobody could read the Secrets again")]
    None,
}

/// Which state of a Secret a file was made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Origin {
    pub uid: String,
    pub resource_version: String,
    pub checksum: String,
}

impl std::fmt::Debug for Sops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sops").field(&self.names).finish()
    }
}

impl Sops {
    pub fn new(recipients: &[impl AsRef<str>]) -> Result<Self, RecipientError> {
        let names: BTreeSet<String> = recipients.iter().map(|name| name.as_ref().trim().to_owned()).collect();
        let parse = |name: &String| name.parse().map_err(|_| RecipientError::Malformed(name.clone()));
        let recipients: Vec<_> = names.iter().map(parse).collect::<Result<_, _>>()?;
        if recipients.is_empty() { Err(RecipientError::None) } else { Ok(Self { recipients, names }) }
    }

    /// The file, and the checksum that its first line has.
    pub(super) fn encrypt(&self, yaml: &[u8], version: &Version) -> Result<(Vec<u8>, String), SecretError> {
        let failed = |message: &str| SecretError::Encrypt(message.to_owned());
        let text = std::str::from_utf8(yaml).map_err(|_| failed("it is not text"))?;
        let mut value = yaml::parse(text).map_err(|error| failed(&error.to_string()))?;
        let key: [u8; 32] = rand::random();
        let mac = mac(&value);
        for field in ENCRYPTED {
            encrypt_fields(&key, field, &mut value[field])?;
        }
        // Indexing made them.
        if let Some(root) = value.as_object_mut() {
            root.retain(|name, value| !(ENCRYPTED.contains(&name.as_str()) && value.is_null()));
        }
        let modified = timestamp::format_time(chrono::Utc::now());
        value["sops"] = json!({
            "age": self.keys(&key)?,
            "encrypted_regex": ENCRYPTED_REGEX,
            "lastmodified": modified,
            "mac": encrypt_text(&key, &mac, &modified)?,
            "version": SOPS_VERSION,
        });
        let body = yaml::emit(&value);
        let checksum = checksum(body.as_bytes());
        let Version { uid, resource_version, .. } = version;
        let file = format!("{MARK} uid={uid} resourceVersion={resource_version} sha256={checksum}\n{body}");
        Ok((file.into_bytes(), checksum))
    }

    /// `None` if the file is not ours, was edited, or is for other recipients.
    pub(super) fn origin(&self, file: &[u8]) -> Option<Origin> {
        let text = std::str::from_utf8(file).ok()?;
        let (mark, body) = text.split_once('\n')?;
        let mut words = mark.strip_prefix(MARK)?.split_whitespace();
        let mut word = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        let (uid, resource_version, found) = (word("uid")?, word("resourceVersion")?, word("sha256")?);
        let checksum = checksum(body.as_bytes());
        let value = yaml::parse(body).ok()?;
        let recipients = value["sops"]["age"].as_array()?.iter().filter_map(|key| key["recipient"].as_str());
        let is_ours = recipients.map(str::to_owned).collect::<BTreeSet<_>>() == self.names;
        (is_ours && checksum == found).then_some(Origin { uid, resource_version, checksum })
    }

    /// The key of the file, for each recipient by itself.
    fn keys(&self, key: &[u8]) -> Result<Vec<Value>, SecretError> {
        let one = |(recipient, name): (&Recipient, &String)| {
            let armored = armored(recipient, key).map_err(|error| SecretError::Encrypt(error.to_string()))?;
            Ok(json!({"recipient": name, "enc": armored}))
        };
        self.recipients.iter().zip(&self.names).map(one).collect()
    }
}

fn armored(recipient: &Recipient, key: &[u8]) -> Result<String, Box<dyn std::error::Error>> {
    let encryptor = age::Encryptor::with_recipients(std::iter::once(recipient as &dyn age::Recipient))?;
    let mut writer = encryptor.wrap_output(ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor)?)?;
    writer.write_all(key)?;
    Ok(String::from_utf8(writer.finish()?.finish()?)?)
}

fn encrypt_fields(key: &[u8; 32], path: &str, value: &mut Value) -> Result<(), SecretError> {
    for (name, value) in value.as_object_mut().into_iter().flatten() {
        let aad = format!("{path}:{name}:");
        match value {
            // Sops leaves what is empty as it is.
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => *value = encrypt_text(key, text, &aad)?.into(),
            Value::Null => {}
            _ => return Err(SecretError::Encrypt(format!("`{path}.{name}` is not text"))),
        }
    }
    Ok(())
}

fn encrypt_text(key: &[u8; 32], text: &str, aad: &str) -> Result<String, SecretError> {
    let nonce: [u8; 32] = rand::random();
    let payload = Payload { msg: text.as_bytes(), aad: aad.as_bytes() };
    let sealed = Cipher::new(key.into()).encrypt(&Nonce::<U32>::from(nonce), payload);
    let sealed = sealed.map_err(|error| SecretError::Encrypt(error.to_string()))?;
    let (data, tag) = sealed.split_at(sealed.len() - TAG_BYTES);
    let [data, iv, tag] = [data, &nonce, tag].map(|bytes| STANDARD.encode(bytes));
    Ok(format!("ENC[AES256_GCM,data:{data},iv:{iv},tag:{tag},type:str]"))
}

/// Over every value of the file, in its order, in the spelling of sops.
fn mac(value: &Value) -> String {
    let mut hash = Sha512::new();
    yaml::for_each_scalar(value, &mut |_, scalar| match scalar {
        Value::String(text) => hash.update(text),
        Value::Bool(true) => hash.update("True"),
        Value::Bool(false) => hash.update("False"),
        Value::Number(number) => hash.update(number.to_string()),
        _ => {}
    });
    hash.finalize().iter().map(|byte| format!("{byte:02X}")).collect()
}

fn checksum(body: &[u8]) -> String {
    Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Who made an artifact: an Ed25519 signature (RFC 8032) of its checksum, and the keys a user trusts.
//!
//! Keys are the PEM files that `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write:
//! PKCS #8 for the one that signs, `SubjectPublicKeyInfo` for the ones that are trusted.

use ed25519_dalek::pkcs8::{DecodePrivateKey, DecodePublicKey};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use super::container;
use super::{Problem, ProblemKind};

/// Bytes of a public key in an artifact.
pub const KEY_BYTES: usize = 32;
/// Bytes of a signature in an artifact.
pub const SIGNATURE_BYTES: usize = 64;
/// Keeps a signature of an artifact from being taken for one of anything else.
const PURPOSE: &[u8] = b"cohort artifact\0";
/// How each key of a PEM file begins.
const PEM_BEGIN: &str = "-----BEGIN ";

/// The key that artifacts are signed with.
#[derive(Debug)]
pub struct SecretKey(SigningKey);

impl SecretKey {
    /// Reads a private key in PEM; the error says what is wrong with it.
    pub fn from_pem(text: &str) -> Result<SecretKey, String> {
        SigningKey::from_pkcs8_pem(text)
            .map(SecretKey)
            .map_err(|error| format!("it is not an Ed25519 private key in PEM: {error}"))
    }

    /// Signs the bytes of an artifact in place, over a signature that may be there.
    pub fn sign(&self, artifact: &mut [u8]) -> Result<(), Problem> {
        container::read(artifact)?;
        let key = self.0.verifying_key().to_bytes();
        let signature = self.0.sign(&message(&container::checksum(artifact)));
        container::put_signature(artifact, &key, &signature.to_bytes());
        Ok(())
    }
}

/// The public keys whose artifacts a user runs.
#[derive(Clone, Debug)]
pub struct TrustedKeys(Vec<VerifyingKey>);

impl TrustedKeys {
    /// Reads public keys in PEM, one after another; the error says what is wrong with them.
    pub fn from_pem(text: &str) -> Result<TrustedKeys, String> {
        let begins: Vec<usize> = text.match_indices(PEM_BEGIN).map(|(at, _)| at).collect();
        if begins.is_empty() {
            return Err("there is no public key in PEM in it".to_owned());
        }
        let ends = begins.iter().skip(1).copied().chain([text.len()]);
        begins
            .iter()
            .zip(ends)
            .enumerate()
            .map(|(index, (begin, end))| {
                VerifyingKey::from_public_key_pem(text[*begin..end].trim_end()).map_err(|error| {
                    format!("key {} is not an Ed25519 public key: {error}", index + 1)
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .map(TrustedKeys)
    }

    /// Refuses an artifact that none of the keys has signed.
    pub fn check(&self, artifact: &[u8]) -> Result<(), Problem> {
        container::read(artifact)?;
        let expected = match self.0.len() {
            1 => "that of the trusted key".to_owned(),
            count => format!("that of one of the {count} trusted keys"),
        };
        let found = match container::signature(artifact) {
            None => "none".to_owned(),
            Some((key, _)) if self.0.iter().any(|trusted| trusted.as_bytes() == key) => {
                // Whether it is this key's was checked when the artifact was read.
                return Ok(());
            }
            Some((key, _)) => format!("one by the key {}", container::hex(key)),
        };
        Err(Problem::new(
            ProblemKind::Untrusted,
            "its signature",
            expected,
            found,
        ))
    }
}

/// Checks the signature of an artifact, if it has one, against the key that is named beside it.
pub fn verify(artifact: &[u8]) -> Result<(), Problem> {
    let Some((key, signature)) = container::signature(artifact) else {
        return Ok(());
    };
    let checksum = container::checksum(artifact);
    let is_valid = VerifyingKey::from_bytes(key).is_ok_and(|key| {
        key.verify_strict(&message(&checksum), &Signature::from_bytes(signature))
            .is_ok()
    });
    if is_valid {
        return Ok(());
    }
    Err(Problem::damaged(
        "its signature",
        format!("one of the content by the key {}", container::hex(key)),
        "another",
    ))
}

fn message(checksum: &[u8]) -> Vec<u8> {
    [PURPOSE, checksum].concat()
}

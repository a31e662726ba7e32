//! Secrets of tokens: 32 random bytes that are shown once. The store has only their hash.

use std::fmt::{self, Write};

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// What every secret begins with, so that people and scanners know one when they see it.
const PREFIX: &str = "pt_";

/// The secret of a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new one, from the machine's randomness.
    pub fn random() -> Secret {
        // Two random ids have 122 random bits each; 256 need a third.
        let bytes = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()];
        let mut hash = Sha256::new();
        bytes.iter().for_each(|id| hash.update(id.as_bytes()));
        Secret(format!("{PREFIX}{}", hex(&hash.finalize())))
    }

    /// One that somebody brings along.
    pub fn given(text: &str) -> Secret {
        Secret(text.trim().to_owned())
    }

    /// Shows it: in the file of its owner, or once to whoever asked for it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What the store knows it by.
    pub fn hash(&self) -> String {
        hex(&Sha256::digest(self.0.as_bytes()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes everything");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_differ_and_are_not_shown_by_accident() {
        let (one, other) = (Secret::random(), Secret::random());
        assert_eq!(one.reveal().len(), PREFIX.len() + 64);
        assert_ne!(one, other);
        assert_ne!(one.hash(), other.hash());
        assert!(!format!("{one:?}").contains(one.reveal()));
        assert_eq!(Secret::given(&format!(" {}\n", one.reveal())).hash(), one.hash());
    }
}

//! The secret that all processes of a cluster share.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use kreon_base::{Error, Result};
use sha2::Sha256;

/// The secret that all processes of a cluster share, 16 to 1024 bytes. 32 random ones are as good as any.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// Fewest bytes.
    pub const BYTES_MIN: usize = 16;
    /// Most bytes.
    pub const BYTES_MAX: usize = 1024;

    /// A key.
    ///
    /// # Errors
    /// `InvalidArgument`: its length is not allowed.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        if !(Self::BYTES_MIN..=Self::BYTES_MAX).contains(&bytes.len()) {
            let (least, most) = (Self::BYTES_MIN, Self::BYTES_MAX);
            let text = format!("a key of {} bytes: {least} to {most}", bytes.len());
            return Err(Error::invalid(text));
        }
        Self::of(bytes)
    }

    /// What stands for a key where there is none: it proves nothing.
    pub(super) fn none() -> Result<Self> {
        Self::of(b"no key")
    }

    fn of(bytes: &[u8]) -> Result<Self> {
        let mac = Hmac::new_from_slice(bytes);
        mac.map(Self).map_err(|e| Error::invalid(e.to_string()))
    }

    /// A code over several texts, each with its length before it.
    pub(super) fn over(&self, texts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for text in texts {
            mac.update(&(text.len() as u64).to_le_bytes());
            mac.update(text);
        }
        mac
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

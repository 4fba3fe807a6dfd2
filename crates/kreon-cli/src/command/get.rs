//! `kreon get`: print one value.

use std::ffi::OsString;

use clap::Args;
use kreon::{Error, ErrorKind, Result};

use crate::encoding::Controls;
use crate::session::Session;
use crate::sink::Sink;

/// Print the value of a key; exit code 1 if there is none
#[derive(Debug, Args)]
pub struct Get {
    /// The key, in the encoding of keys
    key: OsString,
    /// Print the bytes of the value as they are, with no line end
    #[arg(long)]
    raw: bool,
}

impl Get {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let key = session.key(&self.key)?;
        // Printed after the call: a slow reader of our output must not hold the frame.
        let mut text = String::new();
        let mut raw = Vec::new();
        let found = session.existing_region()?.get_with(&key, |value| {
            let encoding = session.value_encoding;
            match self.raw {
                true => raw.extend_from_slice(value),
                false => encoding.encode_into(value, Controls::Keep, &mut text),
            }
        })?;
        match found {
            None => Err(self.no_such_key(session, &key)),
            Some(()) if self.raw => out.write(&raw),
            Some(()) => out.line(&text),
        }
    }

    fn no_such_key(&self, session: &Session, key: &[u8]) -> Error {
        let mut name = String::new();
        session
            .key_encoding
            .encode_into(key, Controls::Escape, &mut name);
        Error::new(
            ErrorKind::NotFound,
            format!("no key `{name}` in region `{}`", session.region_name()),
        )
    }
}

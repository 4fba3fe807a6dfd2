//! `kreon get`: print one value.

use std::ffi::OsString;

use clap::Args;

use crate::encoding::{Controls, Encoding, needs_escapes, shown};
use crate::failure::{Code, Failure, Result};
use crate::session::Session;
use crate::sink::Sink;

/// Print the value of a key; exit code 1 if there is none
///
/// The bytes are printed as they are, and a line end. At a terminal a value that is not UTF-8, or has control
/// characters, is shown with escapes (see --escapes).
#[derive(Debug, Args)]
pub struct Get {
    /// The key, in the encoding of keys
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    /// Print the bytes of the value as they are, with no line end, also at a terminal
    #[arg(long)]
    raw: bool,
}

impl Get {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let key = session.key(&self.key)?;
        let at_terminal = out.is_terminal();
        // Printed after the call: a slow reader of our output must not hold the frame.
        let mut text = Vec::new();
        let found = session.existing_region()?.get_with(&key, |value| {
            let encoding = match session.value_encoding {
                _ if self.raw => Encoding::Text,
                Encoding::Text if at_terminal && needs_escapes(value) => Encoding::Escapes,
                encoding => encoding,
            };
            encoding.encode_into(value, Controls::KeepLines, &mut text);
        })?;
        if found.is_none() {
            return Err(no_such_key(session, &key));
        }
        if !self.raw {
            text.push(b'\n');
        }
        Ok(out.write(&text)?)
    }
}

fn no_such_key(session: &Session, key: &[u8]) -> Failure {
    let key = shown(session.key_encoding, key);
    let region = session.region_name();
    Failure::new(
        Code::KeyNotFound,
        format!("not found: no key `{key}` in region `{region}`"),
        "check the key and --region",
    )
}

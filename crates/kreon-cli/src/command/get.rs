//! `kreon get`: print one value.

use std::ffi::OsString;
use std::io::BufRead;

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
        let region = session.existing_region()?;
        if self.raw {
            let Some(mut value) = region.get_reader(&key)? else {
                return Err(self.no_such_key(session, &key));
            };
            loop {
                let bytes = value.bytes()?;
                if bytes.is_empty() {
                    return Ok(());
                }
                out.write(bytes)?;
                let written = bytes.len();
                value.consume(written);
            }
        }
        // A copy: a slow reader of our output must not hold the frame.
        let Some(value) = region.get(&key)? else {
            return Err(self.no_such_key(session, &key));
        };
        let encoding = session.value_encoding;
        encoding.encode_pieces(&value, Controls::Keep, |text| out.write(text.as_bytes()))?;
        out.line("")
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

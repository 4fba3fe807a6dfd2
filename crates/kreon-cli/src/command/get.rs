//! `kreon get`: print one value.

use std::ffi::OsString;

use clap::Args;

use crate::encoding::{Controls, Encoding, needs_escapes, shown};
use crate::failure::{Code, Failure, Result};
use crate::place::Region;
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
        let region = session.existing_region()?;
        let at_terminal = out.is_terminal();
        let is_found = match session.value_encoding {
            _ if self.raw => stream(&region, &key, session, out)?,
            Encoding::Text if !at_terminal => stream(&region, &key, session, out)?,
            encoding => print(&region, &key, encoding, session, out)?,
        };
        if !is_found {
            return Err(no_such_key(session, &key));
        }
        match self.raw {
            true => Ok(()),
            false => Ok(out.write(b"\n")?),
        }
    }
}

/// Writes the bytes of the value as they are, with only a part of them in memory; false if there is no such key.
fn stream(region: &Region, key: &[u8], session: &Session, out: &mut Sink) -> Result<bool> {
    region.stream(key, |bytes| {
        session.interrupt.check()?;
        Ok(out.write(bytes)?)
    })
}

/// Writes the value in `encoding`; false if there is no such key.
fn print(
    region: &Region,
    key: &[u8],
    encoding: Encoding,
    session: &Session,
    out: &mut Sink,
) -> Result<bool> {
    let Some(value) = region.get(key)? else {
        return Ok(false);
    };
    let encoding = match encoding {
        Encoding::Text if out.is_terminal() && needs_escapes(&value) => Encoding::Escapes,
        encoding => encoding,
    };
    encoding.encode_pieces(&value, Controls::KeepLines, |text| {
        session.interrupt.check()?;
        Ok::<_, Failure>(out.write(text)?)
    })?;
    Ok(true)
}

pub(super) fn no_such_key(session: &Session, key: &[u8]) -> Failure {
    let key = shown(session.key_encoding, key);
    let region = session.region_name();
    Failure::new(
        Code::KeyNotFound,
        format!("not found: no key `{key}` in region `{region}`"),
        "check the key and --region",
    )
}

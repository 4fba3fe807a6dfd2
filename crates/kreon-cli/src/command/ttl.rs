//! `kreon ttl` and `kreon persist`: how long keys live.

use std::ffi::OsString;

use clap::Args;
use kreon::Ttl as Left;

use super::get::no_such_key;
use crate::failure::Result;
use crate::lifetime::lifetime_text;
use crate::session::Session;
use crate::sink::Sink;

/// Print how long the value of a key lives, as 12.345s, or `unlimited`; exit code 1 if there is none
#[derive(Debug, Args)]
pub struct Ttl {
    /// The key, in the encoding of keys
    #[arg(allow_negative_numbers = true)]
    key: OsString,
}

impl Ttl {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let key = session.key(&self.key)?;
        match session.existing_region()?.of_store()?.ttl(&key)? {
            None => Err(no_such_key(session, &key)),
            Some(Left::Unlimited) => Ok(out.line("unlimited")?),
            Some(Left::Left(left)) => Ok(out.line(&lifetime_text(left))?),
        }
    }
}

/// Let the values of keys stay that would expire; keys that do not, or are not there, are no failure
#[derive(Debug, Args)]
pub struct Persist {
    /// The keys, in the encoding of keys
    #[arg(required = true, allow_negative_numbers = true, value_name = "KEY")]
    keys: Vec<OsString>,
}

impl Persist {
    pub fn run(&self, session: &Session) -> Result<()> {
        let region = session.existing_region()?;
        let region = region.of_store()?;
        for key in &self.keys {
            region.persist(session.key(key)?)?;
        }
        // An update has the durability that the store was opened with.
        match session.durability {
            kreon::Durability::Sync => session.place.sync(),
            kreon::Durability::Buffered => Ok(()),
        }
    }
}

//! `kreon delete`: remove keys.

use std::ffi::OsString;

use clap::Args;
use kreon::Result;

use crate::session::Session;

/// Remove keys and their values; a key that is not there is no failure
#[derive(Debug, Args)]
pub struct Delete {
    /// The keys, in the encoding of keys
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<OsString>,
}

impl Delete {
    pub fn run(&self, session: &Session) -> Result<()> {
        let region = session.existing_region()?;
        for key in &self.keys {
            region.delete_with(session.key(key)?, session.durability)?;
        }
        Ok(())
    }
}

//! `kreon delete`: remove keys.

use std::ffi::OsString;

use clap::Args;

use super::selection::Selection;
use crate::failure::Result;
use crate::session::Session;

/// Remove keys and their values, one by one or whole ranges of them; a key that is not there is no failure
#[derive(Debug, Args)]
pub struct Delete {
    /// The keys, in the encoding of keys
    #[arg(
        required_unless_present_any = ["prefix", "from", "to"],
        conflicts_with_all = ["prefix", "from", "to"],
        allow_negative_numbers = true,
        value_name = "KEY"
    )]
    keys: Vec<OsString>,
    #[command(flatten)]
    range: Selection,
}

impl Delete {
    pub fn run(&self, session: &Session) -> Result<()> {
        let region = session.existing_region()?;
        if self.keys.is_empty() {
            region.delete_range(self.range.bounds(session)?, session.durability)?;
        }
        for key in &self.keys {
            region.delete(&session.key(key)?, session.durability)?;
        }
        Ok(())
    }
}

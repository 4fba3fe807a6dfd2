//! `kreon compact`: one packed tree of all levels of a region.

use clap::Args;
use kreon::Result;

use crate::progress::Bar;
use crate::session::Session;

/// Make one packed tree of all levels of the region, without what was deleted
#[derive(Debug, Args)]
pub struct Compact {}

impl Compact {
    pub fn run(&self, session: &Session) -> Result<()> {
        let bar = Bar::new();
        let region = session.existing_region()?;
        region.compact_with(|progress| bar.show(progress))
    }
}

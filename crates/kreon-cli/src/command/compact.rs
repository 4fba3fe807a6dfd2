//! `kreon compact`: the store as small as it gets.

use clap::Args;

use crate::failure::Result;
use crate::progress::Bar;
use crate::session::Session;

/// Make the store as small as it gets: one packed tree a region, no dead records, nothing kept ready
#[derive(Debug, Args)]
pub struct Compact {
    /// Make one tree of the levels of the named region only (the log, which all regions share, is cleaned all the same)
    #[arg(long)]
    only_region: bool,
}

impl Compact {
    pub fn run(&self, session: &Session) -> Result<()> {
        let bar = Bar::new();
        if self.only_region {
            let region = session
                .place
                .store()?
                .existing_region(&session.region_name())?;
            return Ok(region.compact_with(|progress| bar.show(progress))?);
        }
        // A name that is wrong is told, though all regions are compacted.
        if session.names_region() {
            session.existing_region()?;
        }
        let store = session.place.store()?;
        Ok(store.compact_with(|progress| bar.show(progress))?)
    }
}

//! `kreon regions`: list, make and drop regions.

use clap::{Args, Subcommand};

use crate::encoding::{Encoding, shown};
use crate::failure::Result;
use crate::options::Formatting;
use crate::session::Session;
use crate::sink::Sink;

/// List the regions, or make or drop one
#[derive(Debug, Args)]
pub struct Regions {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the names, one a line (the same as no word at all)
    List,
    /// Make an empty region; no failure if it is there
    Create {
        /// 1 to 255 bytes of UTF-8
        name: String,
        #[command(flatten)]
        formatting: Formatting,
    },
    /// Remove a region with all its pairs
    Drop {
        /// The region to remove
        name: String,
    },
}

impl Regions {
    pub fn reads_only(&self) -> bool {
        matches!(self.action, None | Some(Action::List))
    }

    pub fn creates_store(&self) -> bool {
        matches!(self.action, Some(Action::Create { .. }))
    }

    pub fn formats_store(&self) -> bool {
        matches!(&self.action, Some(Action::Create { formatting, .. }) if formatting.format_store)
    }

    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        match &self.action {
            None | Some(Action::List) => {
                for name in session.place.region_names()? {
                    out.line(&shown(Encoding::Escapes, name.as_bytes()))?;
                }
            }
            Some(Action::Create { name, .. }) => session.place.region(name).map(drop)?,
            Some(Action::Drop { name }) => session.place.drop_region(name)?,
        }
        Ok(())
    }
}

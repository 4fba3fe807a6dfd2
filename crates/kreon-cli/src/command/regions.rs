//! `kreon regions`: list, make and drop regions; their options.

use clap::{Args, Subcommand};
use kreon::RegionOptions;

use super::region_options::{OptionChanges, print};
use crate::encoding::{Encoding, shown};
use crate::failure::{Failure, Result};
use crate::options::Formatting;
use crate::session::Session;
use crate::sink::Sink;

/// List the regions, make or drop one, or change its options
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
        options: OptionChanges,
        #[command(flatten)]
        formatting: Formatting,
    },
    /// Print what a region has of its own, or change it
    ///
    /// What is changed holds for values that are written from then on.
    Options {
        /// The region
        name: String,
        #[command(flatten)]
        changes: OptionChanges,
    },
    /// Remove a region with all its pairs
    Drop {
        /// The region to remove
        name: String,
    },
}

impl Regions {
    pub fn reads_only(&self) -> bool {
        match &self.action {
            None | Some(Action::List) => true,
            Some(Action::Options { changes, .. }) => changes.are_none(),
            Some(Action::Create { .. } | Action::Drop { .. }) => false,
        }
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
            Some(Action::Create { name, options, .. }) if options.are_none() => {
                session.place.region(name).map(drop)?;
            }
            Some(Action::Create { name, options, .. }) => {
                let wanted = options.applied(RegionOptions::new());
                let region = session.place.store()?.region_with(name, &wanted)?;
                if region.options() != wanted {
                    return Err(Failure::usage(format!(
                        "region {name:?} is there with other options: `kreon regions options` changes them"
                    )));
                }
            }
            Some(Action::Options { name, changes }) => {
                let region = session.place.store()?.existing_region(name)?;
                if changes.are_none() {
                    return print(&region.options(), out);
                }
                region.set_options(&changes.applied(region.options()))?;
            }
            Some(Action::Drop { name }) => session.place.drop_region(name)?,
        }
        Ok(())
    }
}

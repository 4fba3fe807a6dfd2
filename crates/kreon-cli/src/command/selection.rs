//! Which keys a scan or a count looks at.

use std::ffi::OsString;
use std::ops::Bound;

use clap::Args;
use kreon::{KeyRange as _, prefix_bounds};

use crate::failure::Result;
use crate::place::{Bounds, Direction, Keys, Scan};
use crate::session::Session;

/// A prefix, or a range of keys; all keys if nothing is said.
#[derive(Debug, Args)]
pub struct Selection {
    /// Only keys that start with this
    #[arg(
        short,
        long,
        value_name = "KEY",
        conflicts_with_all = ["from", "to"],
        allow_negative_numbers = true
    )]
    prefix: Option<OsString>,
    /// Only keys from this one on
    #[arg(short, long, value_name = "KEY", allow_negative_numbers = true)]
    from: Option<OsString>,
    /// Only keys before this one
    #[arg(short, long, value_name = "KEY", allow_negative_numbers = true)]
    to: Option<OsString>,
}

impl Selection {
    /// A scan over the chosen keys of the session's region.
    pub fn scan(&self, session: &Session, direction: Direction) -> Result<Scan> {
        let region = session.existing_region()?;
        region.scan(self.bounds(session)?, direction)
    }

    /// The same without values.
    pub fn keys(&self, session: &Session, direction: Direction) -> Result<Keys> {
        let region = session.existing_region()?;
        region.keys(self.bounds(session)?, direction)
    }

    /// The chosen keys.
    pub fn bounds(&self, session: &Session) -> Result<Bounds> {
        if let Some(prefix) = &self.prefix {
            return Ok(prefix_bounds(&session.key(prefix)?).into_bounds());
        }
        let from = match &self.from {
            Some(from) => Bound::Included(session.key(from)?),
            None => Bound::Unbounded,
        };
        let to = match &self.to {
            Some(to) => Bound::Excluded(session.key(to)?),
            None => Bound::Unbounded,
        };
        Ok((from, to))
    }
}

//! `kreon count`: how many keys there are.

use clap::Args;

use super::selection::Selection;
use crate::failure::Result;
use crate::place::Direction;
use crate::session::Session;
use crate::sink::Sink;

/// Print how many keys there are; reads no values
#[derive(Debug, Args)]
pub struct Count {
    #[command(flatten)]
    selection: Selection,
}

impl Count {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let mut count = 0u64;
        let mut keys = self.selection.keys(session, Direction::Ascending)?;
        while keys.next()?.is_some() {
            session.interrupt.check()?;
            count += 1;
        }
        Ok(out.line(&count.to_string())?)
    }
}

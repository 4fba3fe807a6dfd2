//! `kreon count`: how many keys there are.

use clap::Args;

use super::selection::Selection;
use crate::failure::Result;
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
        for key in self.selection.scan(session)?.keys() {
            key?;
            session.interrupt.check()?;
            count += 1;
        }
        Ok(out.line(&count.to_string())?)
    }
}

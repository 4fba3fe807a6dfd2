//! `kreon count`: how many keys there are.

use clap::Args;
use kreon::Result;

use super::selection::Selection;
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
            count += 1;
        }
        out.line(&count.to_string())
    }
}

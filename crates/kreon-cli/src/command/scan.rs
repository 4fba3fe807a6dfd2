//! `kreon scan`: print pairs in the order of their keys.

use clap::Args;

use super::selection::Selection;
use crate::encoding::Controls;
use crate::failure::{Failure, Result};
use crate::place::{self, Direction, Keys};
use crate::session::Session;
use crate::sink::Sink;

/// Print pairs in the order of their keys: key, tab, value, one pair a line
///
/// Bytes that are not UTF-8 and control characters are written as \\xNN, so that a pair stays on one line, and a
/// backslash as \\x5c where it would read as such an escape. `kreon import --format lines` reads the lines back.
#[derive(Debug, Args)]
pub struct Scan {
    #[command(flatten)]
    selection: Selection,
    /// From the last key to the first
    #[arg(long)]
    reverse: bool,
    /// At most so many pairs
    #[arg(short, long, value_name = "PAIRS", default_value_t = u64::MAX, hide_default_value = true)]
    limit: u64,
    /// Print keys only; values are not even read
    #[arg(short, long)]
    keys: bool,
}

impl Scan {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let direction = match self.reverse {
            true => Direction::Descending,
            false => Direction::Ascending,
        };
        match self.keys {
            true => self.print_keys(self.selection.keys(session, direction)?, session, out),
            false => self.print_pairs(self.selection.scan(session, direction)?, session, out),
        }
    }

    fn print_keys(&self, mut keys: Keys, session: &Session, out: &mut Sink) -> Result<()> {
        let mut line = Vec::new();
        let encoding = session.key_encoding.in_lists();
        for _ in 0..self.limit {
            session.interrupt.check()?;
            let Some(key) = keys.next()? else { break };
            line.clear();
            encoding.encode_into(&key, Controls::Escape, &mut line);
            line.push(b'\n');
            out.write(&line)?;
        }
        Ok(())
    }

    fn print_pairs(&self, mut scan: place::Scan, session: &Session, out: &mut Sink) -> Result<()> {
        let (mut key, mut value, mut line) = (Vec::new(), Vec::new(), Vec::new());
        let keys = session.key_encoding.in_lists();
        let values = session.value_encoding.in_lists();
        for _ in 0..self.limit {
            session.interrupt.check()?;
            if !scan.next_into(&mut key, &mut value)? {
                break;
            }
            line.clear();
            keys.encode_into(&key, Controls::Escape, &mut line);
            line.push(b'\t');
            out.write(&line)?;
            values.encode_pieces(&value, Controls::Escape, |text| {
                session.interrupt.check()?;
                Ok::<_, Failure>(out.write(text)?)
            })?;
            out.write(b"\n")?;
        }
        Ok(())
    }
}

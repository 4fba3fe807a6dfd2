//! `kreon scan`: print pairs in the order of their keys.

use clap::Args;
use kreon::{Keys, Result};

use super::selection::Selection;
use crate::encoding::Controls;
use crate::session::Session;
use crate::sink::Sink;

/// Print pairs in the order of their keys: key, tab, value, one pair a line
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
        let scan = self.selection.scan(session)?;
        match self.keys {
            true => self.print_keys(scan.keys(), session, out),
            false => self.print_pairs(scan, session, out),
        }
    }

    fn print_keys(&self, mut keys: Keys, session: &Session, out: &mut Sink) -> Result<()> {
        let mut line = String::new();
        for _ in 0..self.limit {
            let key = match self.reverse {
                true => keys.next_back(),
                false => keys.next(),
            };
            let Some(key) = key.transpose()? else { break };
            line.clear();
            session
                .key_encoding
                .encode_into(&key, Controls::Escape, &mut line);
            out.line(&line)?;
        }
        Ok(())
    }

    fn print_pairs(&self, mut scan: kreon::Scan, session: &Session, out: &mut Sink) -> Result<()> {
        let (mut key, mut value, mut line) = (Vec::new(), Vec::new(), String::new());
        for _ in 0..self.limit {
            let found = match self.reverse {
                true => scan.next_back_into(&mut key, &mut value)?,
                false => scan.next_into(&mut key, &mut value)?,
            };
            if !found {
                break;
            }
            line.clear();
            let (keys, values) = (session.key_encoding, session.value_encoding);
            keys.encode_into(&key, Controls::Escape, &mut line);
            line.push('\t');
            out.write(line.as_bytes())?;
            values.encode_pieces(&value, Controls::Escape, |text| out.write(text.as_bytes()))?;
            out.line("")?;
        }
        Ok(())
    }
}

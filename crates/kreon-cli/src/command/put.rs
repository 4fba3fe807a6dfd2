//! `kreon put`: write one pair.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use kreon::{Error, VALUE_BYTES_MAX, WriteBatch};

use crate::failure::Result;
use crate::lifetime::parse_lifetime;
use crate::options::Formatting;
use crate::session::Session;

/// Write a value under a key, in place of the one that is there
///
/// A value may begin with a hyphen, a key with a negative number; put `--` before other keys that begin with one.
#[derive(Debug, Args)]
pub struct Put {
    /// The key, in the encoding of keys
    #[arg(allow_negative_numbers = true)]
    key: OsString,
    /// The value, in the encoding of values
    #[arg(
        required_unless_present = "file",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    value: Option<OsString>,
    /// Take the value from a file (`-`: standard input), byte for byte
    #[arg(short, long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// The pair expires after so long: a number with ms, s, m, h or d, such as 10s or 1.5h
    #[arg(long, value_name = "TIME", value_parser = parse_lifetime)]
    ttl: Option<Duration>,
    #[command(flatten)]
    pub formatting: Formatting,
}

impl Put {
    pub fn run(&self, session: &Session) -> Result<()> {
        let key = session.key(&self.key)?;
        let value = match (&self.file, &self.value) {
            (Some(path), _) => read_value(path)?,
            (None, Some(value)) => session.value(value)?,
            (None, None) => Vec::new(),
        };
        if self.ttl.is_some() {
            session.place.store()?;
        }
        let region = session.region()?;
        match self.ttl {
            Some(ttl) => {
                let region = region.of_store()?;
                let mut batch = WriteBatch::new();
                batch.put_with_ttl(region, &key, &value, ttl);
                Ok(session.place.store()?.write(batch, session.durability)?)
            }
            None => region.put(&key, &value, session.durability),
        }
    }
}

fn read_value(path: &Path) -> Result<Vec<u8>> {
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path)
            .map_err(|error| Error::io(format!("open {}", path.display()), error))?;
        Box::new(file)
    };
    let mut value = Vec::new();
    // One byte over the limit is enough for the library to refuse an endless source.
    source
        .take(VALUE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut value)
        .map_err(|error| Error::io(format!("read {}", path.display()), error))?;
    Ok(value)
}

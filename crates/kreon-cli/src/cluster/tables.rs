//! `kreon cluster create-table` and `drop-table`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use kreon_client::Cluster;
use kreon_wire::limits::SPLIT_KEY_BYTES_MAX;

use crate::command::{Reading, quantiles};
use crate::encoding::Encoding;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::options::Shared;
use crate::sink::Sink;

const ABOUT_SPLITS: &str = "\
A table that is not split lies in one group: one server does its work. Each part of a split table is in a group, in \
turn, so that primaries of several servers share the work. A table is not split later.";

/// Make a table, in one group or split into ranges over several; put, import and shell make one that is not split
#[derive(Debug, Args)]
#[command(after_help = ABOUT_SPLITS)]
pub struct CreateTable {
    /// Its name: 1 to 255 bytes of UTF-8
    name: String,
    /// The first key of a range, in the encoding of keys; once for each range but the first
    #[arg(long, value_name = "KEY", conflicts_with = "split_by_sample")]
    split_at: Vec<OsString>,
    /// Choose the ranges so that the rows of this file, which is to be imported, are divided evenly
    #[arg(long, value_name = "FILE")]
    split_by_sample: Option<PathBuf>,
    /// How many ranges the rows of the file are divided into [default: one for each group]
    #[arg(long, value_name = "NUMBER", requires = "split_by_sample")]
    ranges: Option<NonZeroUsize>,
    #[command(flatten)]
    reading: Reading,
}

/// Remove a table with all its pairs
#[derive(Debug, Args)]
pub struct DropTable {
    /// Its name
    name: String,
}

impl CreateTable {
    pub fn run(
        &self,
        cluster: &Cluster,
        shared: &Shared,
        interrupt: &Interrupt,
        out: &mut Sink,
    ) -> Result<()> {
        let keys = shared.key_encoding().unwrap_or(Encoding::Text);
        let splits = match &self.split_by_sample {
            Some(file) => {
                let groups = cluster.groups()?.len();
                let parts = self.ranges.map_or(groups, NonZeroUsize::get);
                let values = shared.value_encoding().unwrap_or(Encoding::Text);
                let from = (file.as_path(), &self.reading);
                quantiles(from, [keys, values], interrupt, parts, SPLIT_KEY_BYTES_MAX)?
            }
            None => self.split_keys(keys)?,
        };
        cluster.create_table(&self.name, &splits)?;
        let ranges = splits.len() + 1;
        Ok(out.line(&format!("table `{}` of {ranges} ranges", self.name))?)
    }

    fn split_keys(&self, encoding: Encoding) -> Result<Vec<Vec<u8>>> {
        use std::os::unix::ffi::OsStrExt as _;
        let mut splits = Vec::with_capacity(self.split_at.len());
        for argument in &self.split_at {
            let mut key = Vec::new();
            encoding
                .decode_into(argument.as_bytes(), &mut key)
                .map_err(|reason| Failure::usage(format!("--split-at: the key is {reason}")))?;
            splits.push(key);
        }
        splits.sort_unstable();
        splits.dedup();
        Ok(splits)
    }
}

impl DropTable {
    pub fn run(&self, cluster: &Cluster) -> Result<()> {
        Ok(cluster.drop_table(&self.name)?)
    }
}

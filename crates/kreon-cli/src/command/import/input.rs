//! The file or standard input that is imported, with the progress through it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use indicatif::{ProgressBar, ProgressBarIter, ProgressDrawTarget, ProgressStyle};
use kreon::{Error, Result};

use super::pipe::Pipe;
use crate::interrupt::Interrupt;

const WINDOW_BYTES: usize = 256 << 10;

const BAR: &str = "{bar:30} {bytes}/{total_bytes} {bytes_per_sec} ETA {eta}";
const SPINNER: &str = "{spinner} {bytes} {bytes_per_sec} {elapsed}";

/// What rows are read from.
pub type Source = BufReader<ProgressBarIter<Box<dyn Read>>>;

/// The opened input.
pub struct Input {
    pub source: Source,
    /// Its position is the bytes read.
    pub progress: ProgressBar,
}

impl Input {
    /// Opens a file (`-`: standard input). Progress is shown on standard error if that is a terminal
    /// and not `quiet`: a bar if the length is known, else a spinner.
    pub fn open(path: &Path, quiet: bool, interrupt: &Interrupt) -> Result<Self> {
        let (reader, len_bytes): (Box<dyn Read>, Option<u64>) = if path == Path::new("-") {
            (Box::new(Pipe::new(io::stdin(), interrupt)), None)
        } else {
            let failed = |error| Error::io(format!("open {}", path.display()), error);
            let file = File::open(path).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_dir() {
                return Err(failed(io::ErrorKind::IsADirectory.into()));
            }
            match metadata.is_file() {
                true => (Box::new(file), Some(metadata.len())),
                false => (Box::new(Pipe::new(file, interrupt)), None),
            }
        };
        let target = match quiet {
            true => ProgressDrawTarget::hidden(),
            false => ProgressDrawTarget::stderr(),
        };
        let progress = ProgressBar::with_draw_target(len_bytes, target);
        let template = len_bytes.map_or(SPINNER, |_| BAR);
        if let Ok(style) = ProgressStyle::with_template(template) {
            progress.set_style(style);
        }
        Ok(Self {
            source: BufReader::with_capacity(WINDOW_BYTES, progress.wrap_read(reader)),
            progress,
        })
    }
}

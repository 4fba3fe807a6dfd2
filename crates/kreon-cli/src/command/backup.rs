//! `kreon backup`, `restore` and `verify-backup`: copies of a store in a folder, and stores made of them.

use std::path::PathBuf;

use clap::Args;
use kreon::{Backup as Folder, ErrorKind};
use serde_json::json;

use crate::failure::{Code, Failure, Result};
use crate::interrupt::Interrupt;
use crate::progress::Bar;
use crate::session::Session;
use crate::sink::Sink;
use crate::size::parse_size;

/// Back the store up into a folder; what a backup there has already is not copied again
#[derive(Debug, Args)]
pub struct Backup {
    /// The folder of the backups; it is made if there is none
    folder: PathBuf,
    /// Most bytes read and copied in a second, such as 50M
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    rate: Option<usize>,
    /// How many backups stay in the folder, this one included
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
    /// The result as one JSON object
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let mut backup = Folder::at(&self.folder).keep(self.keep);
        if let Some(rate) = self.rate {
            backup = backup.bytes_per_second(rate as u64);
        }
        let (bar, interrupt) = (Bar::new(), &session.interrupt);
        let made = backup.make_with(session.place.store()?, |progress| {
            bar.show(progress);
            interrupt.check().map_err(|_| ended())
        });
        drop(bar);
        interrupt.check()?;
        let made = made?;
        if self.json {
            let object = json!({
                "number": made.number,
                "before": made.before,
                "bytes": made.bytes,
                "copied_bytes": made.copied_bytes,
                "manifest_bytes": made.manifest_bytes,
            });
            return Ok(out.line(&object.to_string())?);
        }
        out.line(&format!("{:>16} backup", made.number))?;
        out.line(&format!("{:>16} bytes", made.bytes))?;
        Ok(out.line(&format!("{:>16} bytes of them copied", made.copied_bytes))?)
    }
}

/// Make a new store of a backup; every byte is verified
#[derive(Debug, Args)]
pub struct Restore {
    /// The folder of the backups
    folder: PathBuf,
    /// The new store; nothing may be there yet
    target: PathBuf,
    #[command(flatten)]
    which: Which,
}

impl Restore {
    pub fn run(&self, out: &mut Sink) -> Result<()> {
        let (interrupt, bar) = (Interrupt::on_signals()?, Bar::new());
        let restored = self
            .which
            .of(&self.folder)
            .restore_with(&self.target, |progress| {
                bar.show(progress);
                interrupt.check().map_err(|_| ended())
            });
        drop(bar);
        interrupt.check()?;
        self.which.show(&restored.map_err(failed)?, out)
    }
}

/// Read a backup and check every byte of it; exit code 3 if something is wrong
#[derive(Debug, Args)]
pub struct VerifyBackup {
    /// The folder of the backups
    folder: PathBuf,
    #[command(flatten)]
    which: Which,
}

impl VerifyBackup {
    pub fn run(&self, out: &mut Sink) -> Result<()> {
        let (interrupt, bar) = (Interrupt::on_signals()?, Bar::new());
        let checked = self.which.of(&self.folder).verify_with(|progress| {
            bar.show(progress);
            interrupt.check().map_err(|_| ended())
        });
        drop(bar);
        interrupt.check()?;
        self.which.show(&checked.map_err(failed)?, out)
    }
}

// No documentation: it would become the command's.
#[derive(Debug, Args)]
#[allow(missing_docs, reason = "it would become the command's")]
struct Which {
    /// Take the backup with this number instead of the newest
    #[arg(long)]
    number: Option<u32>,
    /// The result as one JSON object
    #[arg(long)]
    json: bool,
}

impl Which {
    fn of(&self, folder: &PathBuf) -> Folder {
        let backup = Folder::at(folder);
        match self.number {
            Some(number) => backup.number(number),
            None => backup,
        }
    }

    fn show(&self, done: &kreon::RestoreReport, out: &mut Sink) -> Result<()> {
        let backup = done.backup;
        if self.json {
            let object = json!({
                "number": backup.number,
                "time_ms": backup.time_ms,
                "bytes": backup.bytes,
                "volume_bytes": backup.volume_bytes,
                "pages": done.pages,
                "log_pages": done.log_pages,
            });
            return Ok(out.line(&object.to_string())?);
        }
        out.line(&format!("{:>16} backup", backup.number))?;
        out.line(&format!("{:>16} bytes, all verified", backup.bytes))?;
        Ok(out.line(&format!("{:>16} bytes of volume", backup.volume_bytes))?)
    }
}

/// Why a backup could not be read. One that is not there is no region that is not there.
fn failed(error: kreon::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => Failure::new(
            Code::FileNotFound,
            error.to_string(),
            "check the folder and --number; `kreon backup` makes backups",
        ),
        _ => error.into(),
    }
}

/// What ends the work; the signal is told instead.
fn ended() -> kreon::Error {
    kreon::Error::new(
        kreon::ErrorKind::Closed,
        Failure::interrupted(2).to_string(),
    )
}

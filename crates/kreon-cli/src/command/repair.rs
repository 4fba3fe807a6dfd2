//! `kreon repair`: salvage a damaged store into a new one.

use std::path::PathBuf;

use clap::Args;
use indicatif::HumanBytes;
use kreon::{Error, ErrorKind, PageRole, Repair as Salvage, RepairReport, SalvagedRegion, Store};

use crate::encoding::{Encoding, shown};
use crate::failure::{Failure, Result, tell};
use crate::options::Shared;
use crate::sink::Sink;

/// Lost keys and ranges of a region, and damaged pages, that are listed.
const LISTED_MAX: usize = 100;

/// Salvage what is readable of a damaged store into a new one; exit code 3 if something is lost
///
/// The source is only read. What is lost is listed on standard output.
#[derive(Debug, Args)]
pub struct Repair {
    /// The damaged store; it is never written
    source: PathBuf,
    /// The new store; nothing may be there yet
    target: PathBuf,
    /// Where the current value of a key is lost, take an older one if there is one
    #[arg(long)]
    stale: bool,
    /// No progress on standard error
    #[arg(short, long)]
    quiet: bool,
}

impl Repair {
    pub fn run(&self, shared: &Shared, out: &mut Sink) -> Result<()> {
        let mut options = Store::options();
        if let Some(memory_bytes) = shared.store.memory {
            options = options.memory_bytes(memory_bytes);
        }
        if let Some(volume_bytes_max) = shared.growth.volume_max {
            options = options.volume_bytes_max(volume_bytes_max as u64);
        }
        let mut repair = Salvage::new().target(options).stale_values(self.stale);
        if !self.quiet {
            let mut last = "";
            repair = repair.progress(move |progress| {
                if progress.step != last {
                    last = progress.step;
                    tell(&format!("{last}: {} changes so far", progress.written));
                }
            });
        }
        let report = repair
            .run(&self.source, &self.target)
            .map_err(|error| self.refused(error))?;
        let encoding = shared.key_encoding().unwrap_or(Encoding::Escapes);
        let listed = show(&report, encoding, out).and_then(|()| Ok(out.flush()?));
        // A loss decides how the command ends, also where nobody reads to the end of the list.
        match report.is_complete() {
            true => listed,
            false => Err(Error::corruption(format!(
                "{} holds what could be salvaged; what is lost is listed on standard output",
                self.target.display()
            ))
            .into()),
        }
    }
}

impl Repair {
    /// Why nothing was salvaged: `NotFound` may be about either store.
    fn refused(&self, error: Error) -> Failure {
        match error.kind() {
            ErrorKind::NotFound if self.source.exists() => Failure::opening(error, &self.target),
            ErrorKind::NotFound => {
                Failure::opening(error, &self.source).with_advice("check the path")
            }
            _ => error.into(),
        }
    }
}

fn show(report: &RepairReport, encoding: Encoding, out: &mut Sink) -> Result<()> {
    match report.epoch {
        Some(epoch) => out.line(&format!("salvaged the state of {epoch}"))?,
        None => out.line("salvaged without a catalogue")?,
    }
    for region in &report.regions {
        show_region(region, encoding, out)?;
    }
    for damaged in report.damaged_pages.iter().take(LISTED_MAX) {
        out.line(&format!(
            "damaged: {} ({})",
            damaged.page,
            role(damaged.role)
        ))?;
    }
    let pages = report.damaged_pages.len() as u64 + report.more_damaged_pages;
    out.line(&format!("{pages:>16} damaged pages"))?;
    for hole in &report.log_holes {
        let place = match hole.segment {
            Some(segment) => format!("byte {} of {segment}", hole.within_segment),
            None => format!("segment number {}, which is missing", hole.sequence),
        };
        let bytes = HumanBytes(hole.bytes);
        out.line(&format!("lost: writes in {bytes} of the log at {place}"))?;
    }
    if !report.log_holes.is_empty() {
        out.line("doubt: keys written there have older values, or none")?;
    }
    if report.cut_records > 0 {
        let count = report.cut_records;
        out.line(&format!(
            "lost: {count} records, perhaps of batches that are not whole"
        ))?;
    }
    if report.unproven_tail_bytes > 0 {
        let bytes = HumanBytes(report.unproven_tail_bytes);
        out.line(&format!(
            "doubt: {bytes} of log behind its end were left out: the torn tail of a crash, or damage \
             to the last synced writes"
        ))?;
    }
    if report.unread_log_end {
        out.line(
            "doubt: the log ends where the source cannot be read; writes behind that are lost",
        )?;
    }
    if report.may_be_stale {
        out.line("doubt: deleted pairs and old values may be back")?;
    }
    if report.took_stale_values {
        out.line("doubt: older values were taken where current ones are lost")?;
    }
    for note in &report.notes {
        out.line(&format!("note: {note}"))?;
    }
    Ok(())
}

fn show_region(region: &SalvagedRegion, encoding: Encoding, out: &mut Sink) -> Result<()> {
    let name = &region.name;
    out.line(&format!("{:>16} pairs in region {name}", region.pairs))?;
    let shown = |key: &[u8]| shown(encoding, key);
    let ranges = region.lost_ranges.len();
    for range in region.lost_ranges.iter().take(LISTED_MAX) {
        let end = range.end.as_deref().map_or("the end".to_owned(), shown);
        let start = shown(&range.start);
        out.line(&format!("lost: {name}: pairs from \"{start}\" up to {end}"))?;
    }
    if ranges > LISTED_MAX {
        let unlisted = ranges - LISTED_MAX;
        out.line(&format!("lost: {name}: pairs in {unlisted} more ranges"))?;
    }
    for key in region.lost_keys.iter().take(LISTED_MAX) {
        out.line(&format!("lost: {name}: the value of {}", shown(key)))?;
    }
    let listed = region.lost_keys.len().min(LISTED_MAX);
    let unlisted = (region.lost_keys.len() - listed) as u64 + region.more_lost_keys;
    if unlisted > 0 {
        out.line(&format!("lost: {name}: the values of {unlisted} more keys"))?;
    }
    if let Some(missing) = region
        .missing_entries
        .filter(|missing| *missing > 0 && !region.is_complete())
    {
        out.line(&format!(
            "lost: {name}: at most {missing} entries of its index"
        ))?;
    }
    if region.stale_values > 0 {
        let count = region.stale_values;
        out.line(&format!(
            "note: {name}: the log holds {count} older records of lost keys"
        ))?;
    }
    Ok(())
}

fn role(role: PageRole) -> &'static str {
    match role {
        PageRole::Superblock => "superblock slot",
        PageRole::Catalogue => "catalogue",
        PageRole::Bitmap => "bitmap block",
        PageRole::Leaf => "leaf",
        PageRole::Index => "index node",
        PageRole::LogHeader => "header of a log segment",
        _ => "page",
    }
}

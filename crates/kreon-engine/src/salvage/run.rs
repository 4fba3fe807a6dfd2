//! The whole salvage: trees, then lost keys from the log before the marker, then the log behind it.

use std::ops::Range;

use kreon_base::{Lsn, RegionId, RegionOptions, Result};
use kreon_format::{Catalogue, LogRecord, RecordKind, place_of, read_made_value};

use super::doubts;
use super::erasing::{self, erased};
use super::found::Live;
use super::log_runs::Runs;
use super::log_walk::{Hole, LogAt, Walked, examine, walk};
use super::orphans;
use super::report::{LogHole, PageRole, SalvageOptions, SalvageProgress, SalvageReport};
use super::stale::Stale;
use super::survey::{Basis, Pieces, Survey};
use super::target::Target;
use super::trees::LeafTaker;
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::engine::Engine;
use kreon_log::{LOG_START, ReplayRecord};

impl Survey {
    /// Copies all readable data into `target`, an empty store, and makes it durable.
    ///
    /// # Errors
    /// Those of writing the target. Damage of the source is no error; the report lists it.
    pub fn salvage(
        self,
        target: &Engine,
        options: SalvageOptions,
        progress: &mut dyn FnMut(SalvageProgress),
    ) -> Result<SalvageReport> {
        let at = LogAt {
            source: &self.seen.source,
            store: self.seen.store,
            map: &self.map,
            runs: Runs::Guessed(&self.map, self.seen.newest_run()),
        };
        let mut work = Work {
            at,
            options,
            hides_segments: self.seen.hides_segments(),
            target: Target::new(target, self.names, progress),
            next_region: RegionId(u32::MAX),
            report: self.report,
        };
        match &self.basis {
            Basis::Checkpoint(catalogue) => work.of_checkpoint(catalogue, &self.live)?,
            Basis::Pieces(pieces) => work.of_pieces(pieces)?,
        }
        work.report.regions = work.target.finish()?;
        Ok(work.report)
    }
}

/// The state of a salvage.
pub(super) struct Work<'a, 't> {
    pub(super) at: LogAt<'a>,
    options: SalvageOptions,
    /// The log may have segments that no readable page names.
    hides_segments: bool,
    pub(super) target: Target<'t>,
    /// The next region number at the checkpoint.
    next_region: RegionId,
    pub(super) report: SalvageReport,
}

impl Work<'_, '_> {
    /// Salvage with the catalogue of the last checkpoint: exact except for damaged parts.
    fn of_checkpoint(&mut self, catalogue: &Catalogue, live: &Live) -> Result<()> {
        self.trees(catalogue, live)?;
        let Some(log) = catalogue.logs.iter().find(|log| log.id == MAIN_LOG) else {
            return Ok(());
        };
        self.next_region = catalogue.next_region;
        self.tell_damaged_headers(log);
        self.fill_losses(log)?;
        self.replay_behind(log)
    }

    /// Restores keys that the trees have lost from the log before the marker.
    fn fill_losses(&mut self, log: &LogRecord) -> Result<()> {
        let marker = log.marker;
        let mut regions = self.target.regions.values();
        if regions.all(|region| region.losses.is_empty()) {
            return Ok(());
        }
        self.target.step("log before the checkpoint");
        let from = self.at.map.start();
        let at = LogAt {
            runs: Runs::Guessed(self.at.map, log.incarnation_at_marker()),
            ..self.at
        };
        let sure_from = examine(at, from..marker)?.sure_from(from, Lsn::MAX);
        // Records before `sure_from` may have been overwritten in a hole, so they are stale values.
        let takes_stale = self.options.stale_values;
        let target = &mut self.target;
        let (mut stale, mut took_stale) = (Stale::default(), false);
        // Lookups in the target see only flushed changes.
        target.flush()?;
        walk_known(at, from..sure_from, target, |target, record, is_lost| {
            if let Some(range) = erased(record)? {
                return erasing::apply_to_stale(target, record.region, range, &stale);
            }
            if !is_lost || takes_stale && !stale.takes(target, record)? {
                return Ok(());
            }
            target.region(record.region)?.told.stale_values += 1;
            if takes_stale {
                took_stale = true;
                apply(target, record)?;
            }
            Ok(())
        })?;
        walk_known(at, sure_from..marker, target, |target, record, is_lost| {
            if let Some(range) = erased(record)? {
                return erasing::apply_to_lost(target, record.region, range);
            }
            match is_lost {
                true => apply_newest(target, record),
                false => Ok(()),
            }
        })?;
        self.report.took_stale_values |= took_stale;
        if sure_from == LOG_START {
            // The log has every write since the creation of the store.
            let regions = self.target.regions.values_mut();
            regions.for_each(|region| region.losses.ranges_found());
        }
        Ok(())
    }

    /// Replays the log behind the marker, across holes.
    fn replay_behind(&mut self, log: &LogRecord) -> Result<()> {
        self.target.step("log");
        let at = LogAt {
            runs: Runs::Recorded(log),
            ..self.at
        };
        let found = examine(at, log.marker..Lsn::MAX)?;
        // A run makes the log that it found durable before it writes.
        let taken_over = log.resumes.last().map_or(Lsn(0), |last| last.resume);
        let durable = found.durable.max(log.durable).max(taken_over);
        let target = &mut self.target;
        let next_region = self.next_region;
        let epoch = self.report.epoch;
        let (mut lacks_makings, mut lacks_drops) = (false, false);
        let walked = walk(at, log.marker..Lsn::MAX, durable, |record| {
            let is_new = record.region >= next_region;
            if record.kind == RecordKind::MakeRegion {
                if is_new {
                    let value = record.value.unwrap_or_default();
                    let (dropped, options) = read_made_value(value)?;
                    lacks_drops |= epoch.is_some_and(|epoch| epoch < dropped);
                    target.name(record.region, record.key, options);
                    target.region(record.region)?;
                }
                return Ok(());
            }
            // Other regions were dropped after the record was written.
            if !target.regions.contains_key(&record.region) {
                if !is_new {
                    return Ok(());
                }
                lacks_makings = true;
            }
            if let Some(range) = erased(&record)? {
                return erasing::apply(target, record.region, range, Lsn::MAX);
            }
            apply_newest(target, &record)
        })?;
        // The record that created a region may be lost in a hole; without holes, the catalogue is older than the log.
        let is_newer = lacks_drops || (lacks_makings && walked.holes.is_empty());
        if is_newer || doubts::is_gone_on(at, log, walked.end) {
            self.report.is_older_than_log();
        }
        self.tell_holes(&walked, found.end);
        Ok(())
    }

    /// Salvage without the catalogue of the last checkpoint: leaves in the order of their epochs, then the log.
    fn of_pieces(&mut self, pieces: &Pieces) -> Result<()> {
        self.target.step("names");
        let from = self.at.map.start();
        let target = &mut self.target;
        let found = walk(self.at, from..Lsn::MAX, Lsn::MAX, |record| {
            if record.kind == RecordKind::MakeRegion {
                let made = read_made_value(record.value.unwrap_or_default());
                let options = made.map_or(RegionOptions::DEFAULT, |(_, options)| options);
                target.name(record.region, record.key, options);
            }
            Ok(())
        })?;
        self.target.step("leaves");
        let mut known: Vec<_> = self.target.names.keys().copied().collect();
        known.retain(|region| !pieces.is_dropped(*region));
        for region in known {
            self.target.region(region)?;
        }
        let mut leaves = pieces.leaves.clone();
        leaves.retain(|leaf| !pieces.is_dropped(leaf.region));
        let mut taker = LeafTaker::new(self.at, &mut self.target, false);
        orphans::take(&mut taker, &leaves, !pieces.are_live)?;
        let spilled = taker.spilled.max(pieces.marker());
        self.target.step("log");
        let sure_from = found.sure_from(from, spilled);
        let takes_stale = self.options.stale_values;
        let target = &mut self.target;
        let walked = walk(self.at, sure_from..Lsn::MAX, found.durable, |record| {
            if record.kind == RecordKind::MakeRegion || pieces.is_dropped(record.region) {
                return Ok(());
            }
            if let Some(range) = erased(&record)? {
                return erasing::apply(target, record.region, range, record.lsn);
            }
            let region = target.region(record.region)?;
            region.losses.overwritten(record.key, record.lsn);
            if region.losses.has_key(record.key) && !takes_stale {
                // A newer version of the key is lost.
                region.told.stale_values += 1;
                return Ok(());
            }
            region.told.log_changes += 1;
            apply(target, &record)
        })?;
        self.tell_holes(&walked, found.end);
        let earlier = found.holes.iter().filter(|hole| hole.to <= sure_from);
        self.tell_log_holes(earlier);
        // Without a catalogue nothing proves that the leaves and the log are complete.
        self.report.may_be_stale = true;
        self.report.notes.push(format!(
            "no catalogue of the last checkpoint can be read: the pairs come from {} leaves and from the \
             log; pairs of lost leaves are missing, and deleted pairs, dropped regions and old values \
             may be back",
            leaves.len()
        ));
        Ok(())
    }

    fn tell_holes(&mut self, walked: &Walked, last: Lsn) {
        self.report.unproven_tail_bytes = last.0.saturating_sub(walked.end.0);
        self.report.cut_records += walked.cut_records;
        self.report.unread_log_end =
            doubts::is_end_unread(self.at, walked.stopped, self.hides_segments);
        self.tell_log_holes(walked.holes.iter());
    }

    fn tell_log_holes<'h>(&mut self, holes: impl Iterator<Item = &'h Hole>) {
        for hole in holes.filter(|hole| !hole.is_seam) {
            let (sequence, within_segment) = place_of(hole.from);
            let placed = self.at.map.get(sequence);
            self.report.log_holes.push(LogHole {
                segment: placed.map(|placed| placed.segment),
                sequence,
                within_segment,
                bytes: hole.to.0.saturating_sub(hole.from.0),
            });
        }
    }

    /// Reports damaged headers of segments before the one that was open at the checkpoint.
    fn tell_damaged_headers(&mut self, log: &LogRecord) {
        let open = log.open.map_or(0, |open| open.sequence);
        for (sequence, placed) in self.at.map.from(0) {
            if sequence < open && placed.header.is_none() {
                let page = placed.segment.first_page();
                self.report.damaged(page, PageRole::LogHeader);
            }
        }
    }
}

impl Walked {
    /// The start of the log that holds the newest write of each of its keys: behind the last hole. Holes from `limit`
    /// on do not count, because no tree holds writes from there on.
    ///
    /// The last record of a load counts as a hole: a load replaces older values, and its records do not show whether
    /// it succeeded.
    fn sure_from(&self, from: Lsn, limit: Lsn) -> Lsn {
        let from = from.max(self.loaded);
        let counts = |hole: &&Hole| hole.from < limit;
        let holes = self.holes.iter().filter(counts).map(|hole| hole.to);
        holes.max().unwrap_or(from).max(from)
    }
}

/// Walks through `range` for changes of regions that the target has; `visit` is told whether the key is lost.
fn walk_known(
    at: LogAt<'_>,
    range: Range<Lsn>,
    target: &mut Target<'_>,
    mut visit: impl FnMut(&mut Target<'_>, &ReplayRecord<'_>, bool) -> Result<()>,
) -> Result<Walked> {
    walk(at, range, Lsn::MAX, |record| {
        let region = target.regions.get(&record.region);
        let Some(region) = region.filter(|_| record.kind != RecordKind::MakeRegion) else {
            return Ok(());
        };
        let is_lost = region.losses.in_range(record.key) || region.losses.has_key(record.key);
        visit(target, &record, is_lost)
    })
}

/// Applies a record that is newer than all lost writes of its key.
fn apply_newest(target: &mut Target<'_>, record: &ReplayRecord<'_>) -> Result<()> {
    let region = target.region(record.region)?;
    region.losses.overwritten(record.key, Lsn::MAX);
    region.told.log_changes += 1;
    apply(target, record)
}

fn apply(target: &mut Target<'_>, record: &ReplayRecord<'_>) -> Result<()> {
    let value = match record.kind {
        RecordKind::Delete => None,
        // A walk skips records of loads and notices; its callbacks handle deleted ranges and new regions before this call.
        RecordKind::DeleteRange
        | RecordKind::MakeRegion
        | RecordKind::DropRegion
        | RecordKind::Loaded
        | RecordKind::Followed => return Ok(()),
        RecordKind::Put | RecordKind::Relocation | RecordKind::Ingested => record.value,
    };
    let value = value.map(|value| (value, record.attributes));
    target.change(record.region, record.key, value)
}

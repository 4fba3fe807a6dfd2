//! Verification of a whole store.

use std::collections::{BTreeMap, BTreeSet};

use kreon_base::{Bug, LogOffset, Lsn, PageNo, Payload, Result, SegmentId};
use kreon_format::{ImagePart, PagePointer, pages_of};
use kreon_l0::L0;
use kreon_mapping::Fetched;

use super::core::Core;
use super::region::RegionState;
use super::scan_source::Located;
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::keys::split;
use crate::level::View;
use crate::level::source::FetchedLog;
use crate::log::{LogPages, MOVED_LOG};
use crate::spill::charges::Charges;
use crate::state::Ledger;
use crate::tree::{self, Entry, Reference, Visitor};
use crate::volume::superblock;

/// What a verification read and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// What is wrong, a line each; the first thousand of each tree.
    pub problems: Vec<String>,
    /// Regions checked.
    pub regions: u64,
    /// Tree pages read and checked.
    pub pages: u64,
    /// Entries of trees and L0s checked.
    pub entries: u64,
    /// Records of the log read and checked.
    pub records: u64,
    /// Bytes of those values.
    pub value_bytes: u64,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Core {
    /// Reads everything and checks it. Spills and checkpoints wait; reads and, until L0' is full,
    /// writes go on.
    pub fn verify(&self) -> Result<VerifyReport> {
        let _upkeep = self.upkeep.lock();
        let ledger = self.parts.ledger.lock();
        let view = self.parts.views.load_full();
        let mut report = VerifyReport::default();
        let (superblock, damaged) = superblock::inspect(self.parts.device.as_ref())?;
        report.problems.extend(damaged);
        if superblock.is_none_or(|found| found.epoch != ledger.epoch) {
            let newest = superblock.map(|found| found.epoch);
            let line = format!("the superblock says {newest:?}, the store {}", ledger.epoch);
            report.problems.push(line);
        } else if let Some(superblock) = superblock {
            self.verify_durable(&superblock, &mut report);
        }
        let mut reached = Reached {
            core: self,
            pages: ledger.pages().collect(),
            charges: Charges::new(&self.parts.log),
            report: &mut report,
        };
        for region in self.regions.list() {
            reached.trees_of(&region, &view);
        }
        ledger.image.iter().for_each(|part| reached.image(part));
        let (pages, charges) = (reached.pages, reached.charges.finish());
        self.verify_l0(&view.active, &mut report);
        if let Some(frozen) = &view.frozen {
            self.verify_l0(&frozen.l0, &mut report);
        }
        self.verify_space(&ledger, &pages, &charges, &mut report);
        Ok(report)
    }

    /// Every record that an L0 points at can be read.
    fn verify_l0(&self, l0: &L0, report: &mut VerifyReport) {
        let regions: BTreeMap<_, _> = self.regions.list().into_iter().map(|r| (r.id, r)).collect();
        let mut cursor = l0.cursor();
        let mut is_valid = cursor.first();
        while is_valid {
            if let Some((id, key)) = split(cursor.key())
                && let Some(region) = regions.get(&id)
            {
                for version in cursor.versions() {
                    report.entries += 1;
                    self.verify_record(region, key, version.payload, &self.log_pages(), report);
                }
            }
            is_valid = cursor.next();
        }
    }

    fn verify_record(
        &self,
        region: &RegionState,
        key: &[u8],
        payload: Payload<'_>,
        log: &impl LogPages,
        report: &mut VerifyReport,
    ) {
        let Payload::Logged { value_bytes, .. } = payload else {
            return;
        };
        if Bug::VerifySkipsRecords.is_planted() {
            return;
        }
        match self.show_logged(region, key, &Located::from(payload), log, |_| ()) {
            Ok(_) => {
                report.records += 1;
                report.value_bytes += u64::from(value_bytes);
            }
            Err(error) => report
                .problems
                .push(format!("region {:?}: {error}", region.name)),
        }
    }

    /// The bitmap says what the trees and the catalogue reach; live bytes are what they point at.
    fn verify_space(
        &self,
        ledger: &Ledger,
        reached: &BTreeSet<PageNo>,
        charges: &BTreeMap<SegmentId, i64>,
        report: &mut VerifyReport,
    ) {
        let allocator = self.parts.allocator.lock();
        // With damage, what was not reached says nothing.
        if report.problems.is_empty() {
            for page in allocator.live_pages() {
                if !reached.contains(&page) {
                    report.problems.push(format!(
                        "{page} is marked as in use, but nothing reaches it"
                    ));
                }
            }
            let logs = [MAIN_LOG, MOVED_LOG].map(|log| allocator.log_segments(log));
            for (segment, _) in logs.concat() {
                let (counted, found) = (
                    i64::from(allocator.live_bytes(segment)),
                    charges.get(&segment).copied(),
                );
                if counted != found.unwrap_or(0) {
                    report.problems.push(format!(
                        "{segment} is said to hold {counted} live bytes, the trees point at {}",
                        found.unwrap_or(0)
                    ));
                }
            }
        }
        for page in reached {
            if !allocator.is_live(*page) {
                report
                    .problems
                    .push(format!("{page} is in use, but marked as free"));
            }
        }
        if ledger.marker > Lsn(self.parts.log.tail().0) {
            report.problems.push(format!(
                "the replay marker {} lies behind the log",
                ledger.marker
            ));
        }
    }
}

/// Collects what the trees reach.
struct Reached<'a> {
    core: &'a Core,
    pages: BTreeSet<PageNo>,
    charges: Charges<'a>,
    report: &'a mut VerifyReport,
}

impl Reached<'_> {
    fn trees_of(&mut self, region: &RegionState, view: &View) {
        self.report.regions += 1;
        let core = self.core;
        for (nodes, record) in core
            .nodes(view, region.id)
            .iter()
            .zip(view.levels.of(region.id))
        {
            let mut records = Records {
                reached: self,
                region,
                round: Vec::new(),
            };
            let findings = tree::verify(nodes, record, region.id, &mut records);
            records.read_round();
            self.report.pages += findings.leaf_pages + findings.index_pages;
            let lines = findings.problems.into_iter();
            self.report.problems.extend(
                lines.map(|line| format!("region {:?} L{}: {line}", region.name, nodes.level)),
            );
        }
    }
}

impl Reached<'_> {
    /// A part of the image of L0. Its records need no look: L0 has them, too.
    fn image(&mut self, part: &ImagePart) {
        let core = self.core;
        let mut own = ImageNodes {
            part,
            pages: BTreeSet::new(),
            problems: Vec::new(),
        };
        for (region, tree) in &part.trees {
            let nodes = core.nodes_of_image(*region);
            let findings = tree::verify(&nodes, tree, *region, &mut own);
            self.report.pages += findings.leaf_pages + findings.index_pages;
            own.problems.extend(findings.problems);
        }
        let ImageNodes {
            pages,
            mut problems,
            ..
        } = own;
        if problems.is_empty() && !pages_of(&part.pages).eq(pages.iter().copied()) {
            problems.push("its list of pages is not that of its trees".to_owned());
        }
        let line = |problem| format!("image of L0 up to {}: {problem}", part.end);
        self.report.problems.extend(problems.into_iter().map(line));
        self.pages.extend(pages_of(&part.pages));
    }
}

/// The visitor of the trees of an image.
struct ImageNodes<'a> {
    part: &'a ImagePart,
    pages: BTreeSet<PageNo>,
    problems: Vec<String>,
}

impl Visitor for ImageNodes<'_> {
    fn page(&mut self, pointer: &PagePointer, _level: u8) -> bool {
        let is_new = self.pages.insert(pointer.page);
        if !is_new {
            let line = format!("{} is reached twice", pointer.page);
            self.problems.push(line);
        }
        is_new
    }

    fn entry(&mut self, entry: Entry<'_>) {
        if !(self.part.start..self.part.end).contains(&entry.lsn) {
            let line = format!("an entry of {} is of another part", entry.lsn);
            self.problems.push(line);
        }
    }
}

/// The visitor of one tree.
struct Records<'a, 'b> {
    reached: &'a mut Reached<'b>,
    region: &'a RegionState,
    /// Entries whose records are read together, in the order of the log: one after the other they
    /// would be one random read each.
    round: Vec<(Vec<u8>, Payload<'static>)>,
}

/// Records of a round.
const ROUND_RECORDS_MAX: usize = 4096;

impl Records<'_, '_> {
    fn read_round(&mut self) {
        self.round
            .sort_unstable_by_key(|(_, payload)| offset_of(payload));
        let core = self.reached.core;
        let mut fetched = Fetched::default();
        for some in self.round.chunks(ROUND_RECORDS_MAX / 16) {
            let located: Vec<_> = some
                .iter()
                .map(|(key, payload)| (key.clone(), (*payload).into()))
                .collect();
            // What cannot be loaded now is told by the read that needs it.
            let _ = core.fetch_values(located.iter(), &mut fetched);
            let log = FetchedLog::new(core.log_pages(), &fetched);
            for (key, payload) in some {
                core.verify_record(self.region, key, *payload, &log, self.reached.report);
            }
        }
        self.round.clear();
    }
}

fn offset_of(payload: &Payload<'_>) -> Option<LogOffset> {
    match payload {
        Payload::Logged { offset, .. } => Some(*offset),
        Payload::Inline { .. } | Payload::Tombstone { .. } | Payload::Erased { .. } => None,
    }
}

impl Visitor for Records<'_, '_> {
    fn page(&mut self, pointer: &PagePointer, level: u8) -> bool {
        let is_new = self.reached.pages.insert(pointer.page);
        if !is_new {
            let line = format!("{} of height {level} is reached twice", pointer.page);
            self.reached.report.problems.push(line);
        }
        is_new
    }

    fn entry(&mut self, entry: Entry<'_>) {
        self.reached.report.entries += 1;
        if let Some(record) = Reference::of(entry.key.len() as u32, entry.payload) {
            self.reached.charges.add(&record);
        }
        if let Payload::Logged {
            offset,
            value_bytes,
        } = entry.payload
        {
            let payload = Payload::Logged {
                offset,
                value_bytes,
            };
            self.round.push((entry.key.to_vec(), payload));
        }
        if self.round.len() == ROUND_RECORDS_MAX {
            self.read_round();
        }
    }
}

//! Verification of a whole store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kreon_base::{PageNo, Payload, RegionId, Result, SegmentId};
use kreon_format::{ImagePart, PagePointer, PageRun, pages_of};
use kreon_l0::L0;

use super::Inspector;
use super::page_set::PageSet;
use super::pointed::Pointed;
use super::verify_records::{RecordReads, Suspects};
use crate::checkpoint::catalogue::MAIN_LOG;
use crate::keys::split;
use crate::level::View;
use crate::progress::{Meter, Progress};
use crate::regions::RegionState;
use crate::spill::charges::Charges;
use crate::state::Ledger;
use crate::tree::{self, Entry, Reference, Visitor};
use kreon_log::{LogPages, MOVED_LOG};
use kreon_volume::superblock;

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
    /// Bytes of those values, with 8 of each that expires.
    pub value_bytes: u64,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }
}

/// The regions by their numbers.
type ById = BTreeMap<RegionId, Arc<RegionState>>;

impl Inspector {
    /// Reads everything and checks it, and tells how far it has come. Spills and checkpoints wait; reads and, until
    /// L0' is full, writes go on.
    pub fn verify(&self, tell: &mut dyn FnMut(Progress)) -> Result<VerifyReport> {
        let _changes = self.versions.lock_changes();
        let ledger = self.storage.ledger.lock();
        let view = self.storage.views.load_full();
        let regions: ById = self.regions.list().into_iter().map(|r| (r.id, r)).collect();
        let mut meter = Meter::new(tell, "log", work_of(&view, &regions));
        let mut report = VerifyReport::default();
        let (superblock, damaged) = superblock::inspect(self.storage.device.as_ref())?;
        // A crash may leave torn and older slots, which the next opening for writing mends. One for reading logs them.
        if !self.storage.options.read_only {
            report.problems.extend(damaged);
        }
        if superblock.is_none_or(|found| found.epoch != ledger.epoch) {
            let newest = superblock.map(|found| found.epoch);
            let line = format!("the superblock says {newest:?}, the store {}", ledger.epoch);
            report.problems.push(line);
        } else if let Some(superblock) = superblock {
            self.verify_durable(&superblock, &mut report);
        }
        meter.step("trees and records");
        let mut reached = Reached {
            inspector: self,
            pages: PageSet::default(),
            charges: Charges::new(&self.storage.log),
            reads: RecordReads::new(self),
            report: &mut report,
            meter: &mut meter,
        };
        reached.pages.extend(ledger.pages());
        for region in regions.values() {
            reached.trees_of(region, &view);
        }
        ledger.image.iter().for_each(|part| reached.image(part));
        view.l0s().for_each(|l0| reached.l0(l0, &regions));
        let (pages, charges, suspects) = reached.finish();
        if !suspects.is_empty() {
            self.verify_suspects(&view, &regions, &suspects, &mut report);
        }
        self.verify_space(&ledger, &pages, &charges, &mut report);
        meter.finish();
        Ok(report)
    }

    /// Reads the records that did not verify at first by themselves.
    fn verify_suspects(
        &self,
        view: &View,
        regions: &ById,
        suspects: &Suspects,
        report: &mut VerifyReport,
    ) {
        for region in regions.values() {
            let records = view.levels.of(region.id);
            for (nodes, record) in self.storage.nodes(view, region.id).iter().zip(records) {
                let mut again = Again {
                    inspector: self,
                    region,
                    suspects,
                    report,
                    pages: PageSet::default(),
                };
                // What is wrong with the nodes is told already.
                tree::verify(nodes, record, region.id, &mut again);
            }
        }
        for l0 in view.l0s() {
            each_version(l0, regions, |region, key, payload| {
                self.verify_again(region, (key, payload), suspects, report);
            });
        }
    }

    /// Reads the record of an entry from the device again if it is a suspect.
    fn verify_again(
        &self,
        region: &RegionState,
        (key, payload): (&[u8], Payload<'_>),
        suspects: &Suspects,
        report: &mut VerifyReport,
    ) {
        let pointed = Pointed::of(region.id, key, payload);
        if let Some(pointed) = pointed.filter(|pointed| suspects.has(pointed.at.offset)) {
            // What is in memory says nothing of what the device has.
            let (offset, extent) = (pointed.at.offset, pointed.extent());
            self.storage.log_pages().forget(offset.0, extent);
            self.verify_record(region, &pointed, report);
        }
    }

    fn verify_record(&self, region: &RegionState, found: &Pointed<'_>, report: &mut VerifyReport) {
        let (log, pages) = (self.storage.log.reader(), self.storage.log_pages());
        match log.check_value(&pages, &found.at, found.attributes) {
            Ok(()) => {
                report.records += 1;
                report.value_bytes += u64::from(found.at.value_bytes);
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
        reached: &PageSet,
        charges: &BTreeMap<SegmentId, i64>,
        report: &mut VerifyReport,
    ) {
        let allocator = self.storage.allocator.lock();
        // With damage, what was not reached says nothing.
        if report.problems.is_empty() {
            for page in allocator.live_pages() {
                if !reached.contains(page) {
                    report.problems.push(format!(
                        "{page} is marked as in use, but nothing reaches it"
                    ));
                }
            }
            let logs = [MAIN_LOG, MOVED_LOG].map(|log| allocator.log_segments(log));
            for (segment, _) in logs.concat() {
                let counted = i64::from(allocator.live_bytes(segment));
                let found = charges.get(&segment).copied().unwrap_or(0);
                if counted != found {
                    report.problems.push(format!(
                        "{segment} is said to hold {counted} live bytes, the trees point at {found}"
                    ));
                }
            }
        }
        for page in reached.iter() {
            if !allocator.is_live(page) {
                report
                    .problems
                    .push(format!("{page} is in use, but marked as free"));
            }
        }
        if ledger.marker > self.storage.log.tail() {
            report.problems.push(format!(
                "the replay marker {} lies behind the log",
                ledger.marker
            ));
        }
    }
}

/// Entries of trees count when they are seen, and when their record is read.
fn work_of(view: &View, regions: &ById) -> u64 {
    let trees = regions.keys().flat_map(|id| view.levels.of(*id));
    let l0s: u64 = view.l0s().map(|l0| l0.len() as u64).sum();
    trees
        .map(|tree| 2 * tree.entries)
        .fold(2 * l0s, u64::saturating_add)
}

/// Shows every version of an L0 in a region that there is.
fn each_version(
    l0: &L0,
    regions: &ById,
    mut show: impl FnMut(&Arc<RegionState>, &[u8], Payload<'_>),
) {
    let mut cursor = l0.cursor();
    let mut is_valid = cursor.first();
    while is_valid {
        if let Some((id, key)) = split(cursor.key())
            && let Some(region) = regions.get(&id)
        {
            for version in cursor.versions() {
                show(region, key, version.payload);
            }
        }
        is_valid = cursor.next();
    }
}

/// Collects what the trees reach, and has the records read.
struct Reached<'a, 'm> {
    inspector: &'a Inspector,
    pages: PageSet,
    charges: Charges<'a>,
    reads: RecordReads<'a>,
    report: &'a mut VerifyReport,
    meter: &'a mut Meter<'m>,
}

impl Reached<'_, '_> {
    fn trees_of(&mut self, region: &RegionState, view: &View) {
        self.report.regions += 1;
        let nodes = self.inspector.storage.nodes(view, region.id);
        for (nodes, record) in nodes.iter().zip(view.levels.of(region.id)) {
            let mut records = Records {
                reached: self,
                region,
            };
            let findings = tree::verify(nodes, record, region.id, &mut records);
            self.report.pages += findings.leaf_pages + findings.index_pages;
            let lines = findings.problems.into_iter();
            self.report.problems.extend(
                lines.map(|line| format!("region {:?} L{}: {line}", region.name, nodes.level)),
            );
        }
    }

    /// A part of the image of L0. Its records need no look: L0 has them, too.
    fn image(&mut self, part: &ImagePart) {
        let inspector = self.inspector;
        let mut own = ImageNodes {
            part,
            pages: BTreeSet::new(),
            problems: Vec::new(),
        };
        for (region, tree) in &part.trees {
            let nodes = inspector.storage.nodes_of_image(*region);
            let findings = tree::verify(&nodes, tree, *region, &mut own);
            self.report.pages += findings.leaf_pages + findings.index_pages;
            own.problems.extend(findings.problems);
        }
        if own.problems.is_empty() && !lists(&part.pages, &own.pages) {
            let line = "its list of pages is not that of its trees".to_owned();
            own.problems.push(line);
        }
        let problems = own.problems.into_iter();
        let problems = problems.map(|line| format!("image of L0 up to {}: {line}", part.end));
        self.report.problems.extend(problems);
        self.pages.extend(pages_of(&part.pages));
    }

    /// Every record that an L0 points at can be read.
    fn l0(&mut self, l0: &L0, regions: &ById) {
        each_version(l0, regions, |region, key, payload| {
            self.entry(region, key, payload);
        });
    }

    /// Reads what is left to be read; what was reached, and which records did not verify.
    fn finish(self) -> (PageSet, BTreeMap<SegmentId, i64>, Suspects) {
        let suspects = self.reads.finish(self.report, self.meter);
        (self.pages, self.charges.finish(), suspects)
    }

    /// Collection passes over what is known to be dead.
    fn not_dead(&mut self, region: &RegionState, found: &Pointed<'_>) {
        let storage = &self.inspector.storage;
        let offset = found.at.offset;
        let segment = offset.segment();
        let sequence = storage.log.reader().sequence_of(segment);
        let dead = sequence.and_then(|sequence| storage.dead.of(segment, sequence));
        if dead.is_some_and(|dead| dead.has(offset, found.extent())) {
            self.report.problems.push(format!(
                "region {:?}: the record at {offset} is live, but collection takes it for dead",
                region.name
            ));
        }
    }

    fn entry(&mut self, region: &RegionState, key: &[u8], payload: Payload<'_>) {
        self.report.entries += 1;
        self.meter.add(1);
        let Some(pointed) = Pointed::of(region.id, key, payload) else {
            return self.meter.add(1);
        };
        self.not_dead(region, &pointed);
        if !self.reads.add(&pointed, self.report, self.meter) {
            self.inspector.verify_record(region, &pointed, self.report);
            self.meter.add(1);
        }
    }
}

/// Whether `runs` list exactly `pages`, each once. In any order: an image is written beside work that frees pages, and a
/// later run may lie before an earlier one.
fn lists(runs: &[PageRun], pages: &BTreeSet<PageNo>) -> bool {
    let mut listed = BTreeSet::new();
    pages_of(runs).all(|page| listed.insert(page)) && listed == *pages
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
struct Records<'a, 'b, 'm> {
    reached: &'a mut Reached<'b, 'm>,
    region: &'a RegionState,
}

impl Visitor for Records<'_, '_, '_> {
    fn page(&mut self, pointer: &PagePointer, level: u8) -> bool {
        let is_new = self.reached.pages.insert(pointer.page);
        if !is_new {
            let line = format!("{} of height {level} is reached twice", pointer.page);
            self.reached.report.problems.push(line);
        }
        is_new
    }

    fn entry(&mut self, entry: Entry<'_>) {
        if let Some(record) = Reference::of(entry.key.len() as u32, entry.payload) {
            self.reached.charges.add(&record);
        }
        self.reached.entry(self.region, entry.key, entry.payload);
    }
}

/// The visitor that looks at suspects alone.
struct Again<'a> {
    inspector: &'a Inspector,
    region: &'a RegionState,
    suspects: &'a Suspects,
    report: &'a mut VerifyReport,
    pages: PageSet,
}

impl Visitor for Again<'_> {
    fn page(&mut self, pointer: &PagePointer, _level: u8) -> bool {
        self.pages.insert(pointer.page)
    }

    fn entry(&mut self, entry: Entry<'_>) {
        let entry = (entry.key, entry.payload);
        self.inspector
            .verify_again(self.region, entry, self.suspects, self.report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_an_image_may_be_listed_in_any_order_but_each_once() {
        let run = |first, count| PageRun {
            first: PageNo(first),
            count,
        };
        let pages = BTreeSet::from([2, 5, 6].map(PageNo));
        assert!(lists(&[run(2, 1), run(5, 2)], &pages));
        assert!(lists(&[run(5, 2), run(2, 1)], &pages));
        assert!(!lists(&[run(5, 2)], &pages));
        assert!(!lists(&[run(5, 2), run(2, 2)], &pages));
        assert!(!lists(&[run(5, 2), run(2, 1), run(5, 1)], &pages));
    }
}

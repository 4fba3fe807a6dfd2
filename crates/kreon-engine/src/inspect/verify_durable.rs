//! Verification of what only the next open will read: catalogue, bitmap blocks, the log behind the
//! replay marker. The open store has it all in memory, so that damage would show when it is too late.

use std::sync::Arc;

use kreon_base::{Error, LogId, Result, SegmentId};
use kreon_format::{LogSegmentHeader, Superblock, place_of};

use super::Inspector;
use super::verify::VerifyReport;
use crate::checkpoint::catalogue::{self, MAIN_LOG};
use kreon_log::{MOVED_LOG, ReplayStart, check_replay};
use kreon_volume::Allocator;
use kreon_volume::page_io::read_pages;

impl Inspector {
    /// Checks what `superblock`, the durable one, leads to. The caller holds the ledger's lock, so
    /// that no checkpoint changes it meanwhile.
    pub fn verify_durable(&self, superblock: &Superblock, report: &mut VerifyReport) {
        if let Err(error) = self.try_durable(superblock, report) {
            report.problems.push(error.to_string());
        }
    }

    fn try_durable(&self, superblock: &Superblock, report: &mut VerifyReport) -> Result<()> {
        let device = self.storage.device.as_ref();
        let (store, bytes) = (superblock.store, superblock.catalogue_bytes);
        let catalogue = catalogue::read(device, store, superblock.catalogue, bytes)?.catalogue;
        let record = catalogue::main_log(&catalogue)?;
        let shared = Arc::clone(&self.storage.device);
        let count = superblock.segments;
        let durable = Allocator::load(shared, count, store, count, &catalogue.groups)?;
        let segments = durable.log_segments(MAIN_LOG);
        let behind = place_of(record.marker).0;
        let old = segments.iter().copied();
        let old = old.filter(|(_, sequence)| *sequence < behind);
        // One that was opened after the checkpoint may have no header yet.
        let moved = durable.log_segments(MOVED_LOG).into_iter();
        let moved = moved.filter(|(segment, _)| durable.live_bytes(*segment) > 0);
        let of = |log| move |(segment, sequence)| (segment, sequence, log);
        for (segment, sequence, log) in old.map(of(MAIN_LOG)).chain(moved.map(of(MOVED_LOG))) {
            if let Err(error) = self.check_header(segment, sequence, log) {
                report.problems.push(error.to_string());
            }
        }
        let start = ReplayStart {
            device,
            store,
            record,
            newest: superblock.incarnation,
            segments: &segments,
            taken: &durable.taken_segments(),
            value_bytes_max: 0,
            backing: self.storage.options.backing,
            // What the image needs of the log, too, must be there.
            has_image: false,
        };
        // Not up to where it is durable: that may lie within a record whose rest is in memory only.
        check_replay(&start, self.storage.log.claim())
    }

    /// The header of a segment before the marker is needed only by a repair.
    fn check_header(&self, segment: SegmentId, sequence: u64, log: LogId) -> Result<()> {
        let page = read_pages(self.storage.device.as_ref(), &[segment.first_page()])?;
        let header = LogSegmentHeader::decode(page.first()?, self.storage.store, segment)?;
        if (header.log, header.sequence) != (log, sequence) {
            let (found, of) = (header.sequence, header.log);
            return Err(Error::corruption(format!(
                "log segment header at {}: of number {found} of {of}, not {sequence} of {log}",
                segment.first_page()
            )));
        }
        Ok(())
    }
}

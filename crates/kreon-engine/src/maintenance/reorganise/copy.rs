//! Copies of records that a scan has just read: most of them are in memory still.

use kreon_base::{ErrorKind, LogOffset, Result, SEGMENT_BYTES};
use kreon_format::{Fragment, fragment_bytes};
use kreon_mapping::Fetched;

use super::super::gc::candidates::Candidates;
use super::super::gc::copy::Copied;
use super::super::gc::judge::Live;
use crate::level::log_source::FetchedLog;
use crate::read::Reader;
use crate::state::Storage;
use kreon_log::{MovedRecord, MovedStream};

/// Bytes that are brought into memory at once.
const ROUND_BYTES: usize = 256 << 10;

/// A record to be copied.
struct Wanted<'a> {
    live: Live,
    offset: LogOffset,
    record: MovedRecord<'a>,
}

/// Copies records through the read path's memory.
pub struct Copies<'a> {
    pub storage: &'a Storage,
    pub reader: &'a Reader,
}

impl Copies<'_> {
    /// Copies `live` in their order. When it returns all copies are written. Stops early without an error when there
    /// is no room for more.
    pub fn copy_scattered(
        &self,
        stream: &mut MovedStream,
        candidates: &Candidates,
        live: &[Live],
    ) -> Result<Vec<Copied>> {
        let wanted: Vec<_> = live
            .iter()
            .filter_map(|live| Wanted::new(candidates, live))
            .collect();
        let mut copied = Vec::with_capacity(wanted.len());
        let mut fetched = Fetched::default();
        fetched.set_room(2 * ROUND_BYTES);
        let mut rest = wanted.as_slice();
        let mut outcome: Result<()> = Ok(());
        while !rest.is_empty() && outcome.is_ok() {
            let (round, behind) = rest.split_at(round_of(rest));
            let places = round
                .iter()
                .map(|wanted| (wanted.offset, wanted.record.payload_bytes));
            self.reader.fetch_records(places, &mut fetched)?;
            outcome = round.iter().try_for_each(|wanted| {
                copied.push(self.copy_one(stream, wanted, &fetched)?);
                Ok(())
            });
            rest = behind;
        }
        stream.flush(&self.storage.log, &self.storage.log_pages())?;
        match outcome {
            Err(error) if error.kind() != ErrorKind::OutOfSpace => Err(error),
            _ => Ok(copied),
        }
    }

    /// The same where each candidate's record is in its source, as a rule.
    pub fn copy_handed(
        &self,
        stream: &mut MovedStream,
        candidates: &Candidates,
        live: &[Live],
        sources: &[&Fetched],
    ) -> Result<Vec<Copied>> {
        let mut copied = Vec::with_capacity(live.len());
        let mut outcome: Result<()> = Ok(());
        for live in live {
            let wanted = Wanted::new(candidates, live);
            let Some((wanted, source)) = wanted.zip(sources.get(live.index)) else {
                continue;
            };
            match self.copy_one(stream, &wanted, source) {
                Ok(copy) => copied.push(copy),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        stream.flush(&self.storage.log, &self.storage.log_pages())?;
        match outcome {
            Err(error) if error.kind() != ErrorKind::OutOfSpace => Err(error),
            _ => Ok(copied),
        }
    }

    fn copy_one(
        &self,
        stream: &mut MovedStream,
        wanted: &Wanted<'_>,
        fetched: &Fetched,
    ) -> Result<Copied> {
        let (log, pages) = (&self.storage.log, self.storage.log_pages());
        let payload_bytes = wanted.record.payload_bytes;
        let len = fragment_bytes(payload_bytes);
        let in_one_piece = wanted.offset.within_segment() as usize + len <= SEGMENT_BYTES as usize;
        let offset = if in_one_piece {
            // What was fetched long ago may be of a segment that is another one now: then it is read anew.
            let fetched = FetchedLog::new(self.storage.log_pages(), fetched);
            let append = |fragment: Fragment<'_>| {
                let payload = wanted.record.whole(&fragment)?;
                stream.append(log, &pages, &wanted.record, |room| {
                    room.copy_from_slice(payload);
                    Ok(())
                })
            };
            log.reader().with_verified_fragment(
                &fetched,
                wanted.offset,
                len,
                &mut Vec::new(),
                append,
            )?
        } else {
            let mut record = log.reader().record_at(wanted.offset, wanted.record);
            stream.append(log, &pages, &wanted.record, |room| record.read(room))?
        };
        Ok(Copied {
            live: wanted.live,
            offset,
            bytes: len as u64,
        })
    }
}

impl<'a> Wanted<'a> {
    fn new(candidates: &'a Candidates, live: &Live) -> Option<Self> {
        let candidate = candidates.get(live.index)?;
        let key = candidates.key(candidate);
        let value_bytes = live.value_bytes? as usize;
        Some(Self {
            // What has ended since a scan met it is moved as it is.
            live: Live {
                has_expired: false,
                ..*live
            },
            offset: candidate.offset,
            record: MovedRecord {
                region: candidate.region,
                is_deletion: false,
                has_attributes: !live.attributes.is_none(),
                key,
                payload_bytes: key.len() + value_bytes,
            },
        })
    }
}

/// How many of `wanted` are brought at once; at least one.
fn round_of(wanted: &[Wanted<'_>]) -> usize {
    let mut sum = 0;
    let fits = |wanted: &&Wanted<'_>| {
        sum += wanted.record.payload_bytes;
        sum <= ROUND_BYTES
    };
    wanted.iter().take_while(fits).count().max(1)
}

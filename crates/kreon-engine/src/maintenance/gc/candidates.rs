//! Candidates: records that are moved if a tree points at them.

use kreon_base::{LogOffset, RegionId, Result};
use kreon_device::AlignedBuf;
use kreon_format::{FragmentHeader, fragment_bytes};

use crate::level::MappedLog;
use crate::space::Victim;
use crate::state::DeadLines;
use kreon_log::LogReader;

/// A record that may be moved, if a tree points at it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its region.
    pub region: RegionId,
    /// Where it stands.
    pub offset: LogOffset,
    /// Its key, in [`Candidates::keys`].
    start: u32,
    end: u32,
}

/// Candidates in the order in which their copies are to stand.
#[derive(Default)]
pub struct Candidates {
    keys: Vec<u8>,
    list: Vec<Candidate>,
}

impl Candidates {
    /// Adds one.
    pub fn push(&mut self, region: RegionId, key: &[u8], offset: LogOffset) {
        let start = self.keys.len() as u32;
        self.keys.extend_from_slice(key);
        debug_assert!(u32::try_from(self.keys.len()).is_ok(), "ends of keys fit");
        self.list.push(Candidate {
            region,
            offset,
            start,
            end: self.keys.len() as u32,
        });
    }

    /// The one with this index.
    pub fn get(&self, index: usize) -> Option<&Candidate> {
        self.list.get(index)
    }

    /// The key of one.
    pub fn key(&self, candidate: &Candidate) -> &[u8] {
        let range = candidate.start as usize..candidate.end as usize;
        self.keys.get(range).unwrap_or_default()
    }

    /// Their indexes by region and key.
    pub fn by_key(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.list.len()).collect();
        order.sort_unstable_by_key(|index| {
            let candidate = self.list.get(*index);
            candidate.map(|candidate| (candidate.region, self.key(candidate)))
        });
        order
    }

    /// Adds all records with bytes in `victim` but those that are known to be `dead`. One that began in an earlier segment,
    /// too: it goes as a whole, or the segment never gets free.
    ///
    /// # Errors
    /// `Io`; `Corruption` if a long key cannot be read.
    pub fn add_all_of(
        &mut self,
        log: &LogReader,
        pages: &MappedLog<'_>,
        (victim, dead): (&Victim, Option<&DeadLines>),
        buffer: &mut AlignedBuf,
    ) -> Result<()> {
        let (mut is_first, mut begins_before, mut long) = (true, false, Vec::new());
        let is_dead = |offset: LogOffset, header: &FragmentHeader| {
            let extent = fragment_bytes(header.length_bytes as usize);
            dead.is_some_and(|dead| dead.has(offset, extent))
        };
        log.keys_of(
            pages,
            (victim.segment, victim.sequence),
            buffer,
            |offset, header, key| {
                begins_before |= is_first && !header.starts_record;
                is_first = false;
                if !header.starts_record || is_dead(offset, header) {
                    return Ok(());
                }
                match key {
                    Some(key) => self.push(header.region, key, offset),
                    None => long.push((*header, offset)),
                }
                Ok(())
            },
        )?;
        if begins_before && let Some(head) = log.head_of(victim.sequence, buffer)? {
            self.add_head(log, head, buffer, &mut long)?;
        }
        let mut key = Vec::new();
        for (header, offset) in long {
            // One that was never whole, perhaps, or is no longer there: then no tree points at it.
            if log
                .read_key(pages, offset, header.key_bytes, &mut key)
                .is_ok()
            {
                self.push(header.region, &key, offset);
            }
        }
        Ok(())
    }

    fn add_head(
        &mut self,
        log: &LogReader,
        head: LogOffset,
        buffer: &mut AlignedBuf,
        long: &mut Vec<(FragmentHeader, LogOffset)>,
    ) -> Result<()> {
        let Some(sequence) = log.sequence_of(head.segment()) else {
            return Ok(());
        };
        log.fragments_of(
            head.segment(),
            sequence,
            buffer,
            |offset, header, payload| {
                if offset == head {
                    match payload.get(..header.key_bytes as usize) {
                        Some(key) => self.push(header.region, key, offset),
                        None => long.push((*header, offset)),
                    }
                }
                Ok(())
            },
        )
    }
}

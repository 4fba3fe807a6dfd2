//! Records that were read from the device into the memory of their reader.

use kreon_base::PAGE_BYTES;

use super::read_buffer::ReadBuffer;
use crate::transfer::TRANSFER_PAGES_MAX;

/// Longest gap between two records that is read along to make one transfer of two.
pub(super) const GAP_BYTES_MAX: u64 = 2 * PAGE_BYTES as u64;

/// What [`Mapping::fetch`](crate::Mapping::fetch) found and read.
#[derive(Default)]
pub struct Fetched {
    /// Bytes from the device.
    memory: Option<ReadBuffer>,
    /// Copies of records that were kept already.
    copies: Vec<u8>,
    /// Sorted by their offsets.
    records: Vec<FetchedRecord>,
    /// Reads at the device.
    transfers: usize,
    /// The most memory that it may take. `None`: no limit.
    room_bytes: Option<usize>,
}

/// Where the bytes of a record are.
pub(super) struct FetchedRecord {
    pub offset: u64,
    pub len: usize,
    /// Position of the first byte.
    pub at: usize,
    /// In the copies, not in the memory.
    pub is_copy: bool,
}

impl Fetched {
    /// The bytes, if they were fetched.
    pub fn get(&self, offset_bytes: u64, len_bytes: usize) -> Option<&[u8]> {
        let record = self.find(offset_bytes)?;
        let memory = match record.is_copy {
            true => self.copies.as_slice(),
            false => self.memory.as_deref()?,
        };
        memory
            .get(record.at..record.at + record.len)?
            .get(..len_bytes)
    }

    /// Reads at the device, without those into frames.
    pub fn transfers(&self) -> usize {
        self.transfers
    }

    /// Whether the record at `offset_bytes` came from the device.
    pub fn was_read(&self, offset_bytes: u64) -> bool {
        self.find(offset_bytes)
            .is_some_and(|record| !record.is_copy)
    }

    fn find(&self, offset: u64) -> Option<&FetchedRecord> {
        let found = self
            .records
            .binary_search_by_key(&offset, |record| record.offset);
        self.records.get(found.ok()?)
    }

    /// How many reads it takes to fetch these records: offsets and lengths, sorted.
    pub fn transfers_of(records: &[(u64, usize)]) -> usize {
        Self::runs_of(records).count()
    }

    /// How many of such records each read takes.
    pub fn runs_of(records: &[(u64, usize)]) -> impl Iterator<Item = usize> {
        let mut rest = records.iter().peekable();
        std::iter::from_fn(move || {
            let (start, len) = *rest.next()?;
            let (mut end, mut count) = (start + len as u64, 1);
            while let Some((offset, len)) =
                rest.next_if(|(offset, len)| joins(start, end, *offset, offset + *len as u64))
            {
                end = end.max(offset + *len as u64);
                count += 1;
            }
            Some(count)
        })
    }

    /// Adds a copy of a record. Before the first [`get`](Self::get) records are added in the order of their offsets.
    pub fn add(&mut self, offset_bytes: u64, bytes: &[u8]) {
        self.records.push(FetchedRecord {
            offset: offset_bytes,
            len: bytes.len(),
            at: self.copies.len(),
            is_copy: true,
        });
        self.copies.extend_from_slice(bytes);
    }

    /// Removes all records and frees the memory, except what the next fetch may need.
    pub fn clear(&mut self) {
        self.transfers = 0;
        self.memory = None;
        self.copies.clear();
        self.records.clear();
        if self.memory_bytes() > self.room() / 2 {
            (self.copies, self.records) = Default::default();
        }
    }

    /// Limits the memory from the next fetch on, in bytes. Records that do not fit are left to the read that needs them.
    pub fn set_room(&mut self, bytes: usize) {
        self.room_bytes = Some(bytes);
    }

    fn room(&self) -> usize {
        self.room_bytes.unwrap_or(usize::MAX)
    }

    /// Memory that it may take beside its copies.
    pub(super) fn room_left(&self) -> usize {
        self.room().saturating_sub(self.copies.len())
    }

    /// Memory in use, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let memory = self.memory.as_ref().map_or(0, |memory| memory.len());
        let records = self.records.capacity() * size_of::<FetchedRecord>();
        memory + self.copies.capacity() + records
    }

    /// Adds a record that `copy` appends to the copies. False if `copy` does not have it, or it has no room.
    pub(super) fn add_copy(
        &mut self,
        offset: u64,
        len: usize,
        copy: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        let at = self.copies.len();
        let is_copied = len <= self.room_left() && copy(&mut self.copies);
        if is_copied {
            debug_assert!(at + len <= self.copies.len());
            self.records.push(FetchedRecord {
                offset,
                len,
                at,
                is_copy: true,
            });
        }
        is_copied
    }

    /// Adds records that `transfers` reads brought into `memory`.
    pub(super) fn add_read(
        &mut self,
        transfers: usize,
        memory: ReadBuffer,
        records: impl IntoIterator<Item = FetchedRecord>,
    ) {
        self.transfers = transfers;
        self.records.extend(records);
        self.memory = Some(memory);
    }

    /// Sorts the records, after which they can be found.
    pub(super) fn sort(&mut self) {
        self.records.sort_unstable_by_key(|record| record.offset);
    }
}

/// Whether one read takes the bytes from `next_start` to `next_end` along with those from `start` to `end` before them.
pub(super) fn joins(start: u64, end: u64, next_start: u64, next_end: u64) -> bool {
    next_start <= end + GAP_BYTES_MAX
        && next_end - start <= (TRANSFER_PAGES_MAX * PAGE_BYTES) as u64
}

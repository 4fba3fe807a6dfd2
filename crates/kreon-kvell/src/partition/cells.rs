//! Cells with I/O under way, and the cache.
//!
//! A cell has one write in flight at most; what changes meanwhile goes into its next write. While anything is under way
//! the newest content is here; afterwards it goes to the cache.

use std::collections::{BTreeSet, VecDeque};

use kreon_base::Result;
use kreon_device::AlignedBuf;

use super::after::After;
use super::contents::{Content, Spares};
use super::request::OpNo;
use crate::cache::{BLOCK_BYTES, Cache, CellNo};
use crate::format::{ExtentNo, Timestamp};
use crate::number_hash::NumberMap;

/// Cells written by one transfer, in bytes: enough for a device to be at its sequential speed.
const RUN_BYTES_MAX: usize = 256 << 10;

/// While both wait, one transfer of so many is a write: reads in plenty must not keep changes from the device.
const WRITE_EVERY: u64 = 4;

/// A transfer for the device.
#[derive(Debug)]
pub enum Transfer {
    /// Fill the buffer from `offset` on.
    Read {
        tag: u64,
        offset: u64,
        buffer: AlignedBuf,
    },
    /// Write the buffer from `offset` on.
    Write {
        tag: u64,
        offset: u64,
        buffer: AlignedBuf,
    },
}

/// What the end of a transfer brought.
#[derive(Debug, Default)]
pub struct Brought {
    /// Requests that can go on.
    pub ready: Vec<OpNo>,
    /// The cell that was read, to be [settled](Cells::settle) when the requests had their look.
    pub cell_read: Option<CellNo>,
    /// What waited for the cells written, with their oldest timestamp.
    pub written: Vec<(Option<Timestamp>, Vec<After>)>,
}

/// Cells with I/O under way, and the cache.
pub struct Cells {
    cache: Cache,
    work: NumberMap<CellNo, Work>,
    /// Cells to be written, without a write in flight: those of this sweep over the device, from its start to its end, so
    /// that neighbours are written together.
    dirty: BTreeSet<CellNo>,
    /// Those that became dirty since the sweep began: the next one has them, or a sweep might never end.
    dirty_next: BTreeSet<CellNo>,
    /// Cells to be read, with their lengths.
    wanted: VecDeque<(CellNo, usize)>,
    in_flight: NumberMap<u64, Flight>,
    tag_next: u64,
    spares: Spares,
}

/// A cell with I/O under way.
#[derive(Default)]
struct Work {
    /// The newest content, from the start of the cell; `None` until a read has brought it.
    content: Option<Content>,
    is_read_wanted: bool,
    readers: Vec<OpNo>,
    /// Others than scans use it.
    is_asked_for: bool,
    is_write_in_flight: bool,
    /// What waits for the write in flight.
    writing: Vec<After>,
    writing_oldest: Option<Timestamp>,
    is_dirty: bool,
    /// What waits for the next write.
    next: Vec<After>,
    next_oldest: Option<Timestamp>,
    /// The content is not to go to the cache.
    passes: bool,
    /// After a failed write: reads go on from here, as the device may have anything.
    is_kept: bool,
}

enum Flight {
    Read(CellNo),
    Write(Vec<CellNo>),
}

impl Cells {
    pub fn new(cache: Cache) -> Self {
        Self {
            cache,
            work: NumberMap::default(),
            dirty: BTreeSet::new(),
            dirty_next: BTreeSet::new(),
            wanted: VecDeque::new(),
            in_flight: NumberMap::default(),
            tag_next: 0,
            spares: Spares::default(),
        }
    }

    /// The content of a cell if it is in memory. It may be shorter than the cell: the rest means nothing.
    pub fn content<'a>(&'a mut self, cell: CellNo, scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if let Some(content) = self
            .work
            .get(&cell)
            .and_then(|work| work.content.as_deref())
        {
            return Some(content);
        }
        let cached = self.cache.get(cell)?;
        // Mostly it lies in one piece: no copy.
        if let Some(whole) = cached.whole() {
            return Some(whole);
        }
        scratch.clear();
        cached.copy_to(scratch, 0..usize::MAX);
        Some(scratch)
    }

    /// Has a cell of `len_bytes` read, and `op` go on when that is done.
    pub fn want(&mut self, cell: CellNo, len_bytes: usize, op: OpNo) {
        self.want_for_scan(cell, len_bytes, op);
        if let Some(work) = self.work.get_mut(&cell) {
            work.is_asked_for = true;
        }
    }

    /// As [`want`](Self::want), for a scan: the cell leaves the cache soon, unless somebody else asks for it.
    pub fn want_for_scan(&mut self, cell: CellNo, len_bytes: usize, op: OpNo) {
        let work = self.work.entry(cell).or_default();
        work.readers.push(op);
        if !work.is_read_wanted {
            work.is_read_wanted = true;
            self.wanted.push_back((cell, len_bytes));
        }
    }

    /// As [`want_for_scan`](Self::want_for_scan), for a request that may wait for the cell already, and for others.
    pub fn want_once(&mut self, cell: CellNo, len_bytes: usize, op: OpNo) {
        let awaited = self.work.get(&cell);
        if !awaited.is_some_and(|work| work.is_read_wanted && work.readers.contains(&op)) {
            self.want_for_scan(cell, len_bytes, op);
        }
    }

    /// Changes the content of a cell. `change` gets what is in memory of it, or nothing if nothing is.
    pub fn change(
        &mut self,
        cell: CellNo,
        timestamp: Option<Timestamp>,
        after: impl IntoIterator<Item = After>,
        change: impl FnOnce(&mut Vec<u8>),
    ) {
        let work = self.work.entry(cell).or_default();
        let content = work.content.get_or_insert_with(|| {
            let mut bytes = Vec::new();
            if let Some(cached) = self.cache.get(cell) {
                cached.copy_to(&mut bytes, 0..usize::MAX);
            }
            Content::of_change(bytes)
        });
        change(content.bytes_mut());
        self.cache.remove(cell);
        work.is_asked_for = true;
        work.passes = false;
        work.next.extend(after);
        work.next_oldest = earlier(work.next_oldest, timestamp);
        if !work.is_dirty {
            work.is_dirty = true;
            let is_free = !work.is_write_in_flight;
            kreon_base::planted!(TwoWritesOfCell => let is_free = true);
            if is_free {
                self.dirty_next.insert(cell);
            }
        }
    }

    /// Keeps a cell with I/O under way out of the cache: a part of a large value would push a thousand small items out.
    pub fn let_pass(&mut self, cell: CellNo) {
        if let Some(work) = self.work.get_mut(&cell) {
            work.passes = true;
        }
    }

    /// Adds to what waits for a write for which `is_it` waits; `false` if there is none.
    pub fn follow(&mut self, cell: CellNo, is_it: impl Fn(&After) -> bool, more: After) -> bool {
        let Some(work) = self.work.get_mut(&cell) else {
            return false;
        };
        let lists = [&mut work.next, &mut work.writing];
        let list = lists.into_iter().find(|list| list.iter().any(&is_it));
        list.map(|list| list.push(more)).is_some()
    }

    /// Appends to `out` up to `room` transfers that the device is to carry out.
    pub fn transfers(&mut self, room: usize, out: &mut Vec<Transfer>) {
        for _ in 0..room {
            let is_turn_of_writes = self.tag_next.is_multiple_of(WRITE_EVERY);
            let transfer = match is_turn_of_writes {
                true => self.next_write().or_else(|| self.next_read()),
                false => self.next_read().or_else(|| self.next_write()),
            };
            let Some(transfer) = transfer else {
                return;
            };
            out.push(transfer);
        }
    }

    fn next_read(&mut self) -> Option<Transfer> {
        let (cell, len_bytes) = self.wanted.pop_front()?;
        let buffer = self.spares.take(len_bytes);
        let (tag, offset) = (self.tag(Flight::Read(cell)), offset_of(cell));
        Some(Transfer::Read {
            tag,
            offset,
            buffer,
        })
    }

    /// The write of the next dirty cell, with those that follow it on the device without a gap.
    fn next_write(&mut self) -> Option<Transfer> {
        if self.dirty.is_empty() {
            std::mem::swap(&mut self.dirty, &mut self.dirty_next);
        }
        let &first = self.dirty.first()?;
        let (mut run, mut len_bytes, mut end) = (Vec::new(), 0, first);
        while self.dirty.contains(&end) {
            let cell_bytes = self.dirty_len(end);
            if !run.is_empty() && len_bytes + cell_bytes > RUN_BYTES_MAX {
                break;
            }
            run.push(end);
            len_bytes += cell_bytes;
            end = CellNo(end.0 + (cell_bytes / BLOCK_BYTES).max(1) as u64);
        }
        for cell in &run {
            self.dirty.remove(cell);
        }
        Some(self.write(run, len_bytes))
    }

    /// A transfer has ended; `buffer` is what it had.
    pub fn ended(&mut self, tag: u64, outcome: &Result<()>, buffer: Option<AlignedBuf>) -> Brought {
        let mut brought = Brought::default();
        match self.in_flight.remove(&tag) {
            Some(Flight::Read(cell)) => {
                brought.cell_read = Some(cell);
                let bytes = buffer.filter(|_| outcome.is_ok());
                self.read_ended(cell, bytes, &mut brought);
            }
            // What waits for a failed write is taken by `abandon_writes`.
            Some(Flight::Write(_)) if outcome.is_err() => {}
            Some(Flight::Write(run)) => {
                for cell in run {
                    self.write_ended(cell, &mut brought);
                }
                self.spares.keep(buffer);
            }
            None => {}
        }
        brought
    }

    /// Puts the content of cells that only requests look at into the cache: after the requests had their look.
    pub fn settle(&mut self, cell: CellNo) {
        let Some(work) = self.work.get_mut(&cell) else {
            return;
        };
        if work.is_kept || work.is_dirty || work.is_write_in_flight || work.is_read_wanted {
            return;
        }
        let Some(work) = self.work.remove(&cell).filter(|work| !work.passes) else {
            return;
        };
        let Some(content) = work.content else {
            return;
        };
        match work.is_asked_for {
            true => self.cache.put(cell, &content),
            false => self.cache.put_scanned(cell, &content),
        };
        self.spares.keep(content.into_buffer());
    }

    /// Whether I/O of a cell is under way, or a change of it.
    pub fn is_under_way(&self, cell: CellNo) -> bool {
        self.work.contains_key(&cell)
    }

    /// Whether I/O is under way in an extent.
    pub fn is_busy(&self, extent: ExtentNo) -> bool {
        self.work
            .keys()
            .any(|&cell| ExtentNo::of(offset_of(cell)) == extent)
    }

    /// Drops the contents of cells whose extent goes: it may come back with others.
    pub fn forget(&mut self, cells: Vec<CellNo>) {
        for cell in cells {
            self.cache.remove(cell);
        }
    }

    /// Whether a write is not done.
    pub fn has_writes(&self) -> bool {
        self.work
            .values()
            .any(|work| work.is_dirty || work.is_write_in_flight)
    }

    /// Limits the cache. Returns the memory it takes then, in bytes.
    pub fn limit_cache(&mut self, memory_bytes: usize) -> usize {
        self.cache.set_limit(memory_bytes)
    }

    /// Memory of the cache and of cells with I/O under way, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.cache.memory_bytes() + self.under_way_bytes()
    }

    /// Memory of cells with I/O under way, in bytes. It has no limit of its own: requests under way decide it.
    pub fn under_way_bytes(&self) -> usize {
        let contents = self.work.values().map(|work| work.content.as_ref());
        contents
            .map(|content| content.map_or(0, |it| it.len()))
            .sum()
    }

    /// Transfers that the device has not ended.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Transfers that the device is to carry out, about.
    pub fn waiting(&self) -> usize {
        self.wanted.len() + self.dirty.len() + self.dirty_next.len()
    }

    /// The oldest timestamp in a write that is not done.
    pub fn oldest(&self) -> Option<Timestamp> {
        let all = self.work.values();
        all.filter_map(|work| earlier(work.writing_oldest, work.next_oldest))
            .min()
    }

    /// Ends all waiting for writes: one has failed, and no other will be made. What was to be written stays readable.
    pub fn abandon_writes(&mut self) -> Vec<After> {
        self.dirty.clear();
        self.dirty_next.clear();
        let mut all = Vec::new();
        for work in self.work.values_mut() {
            work.is_kept |= work.is_dirty || work.is_write_in_flight;
            work.is_dirty = false;
            all.append(&mut work.writing);
            all.append(&mut work.next);
        }
        all
    }

    fn tag(&mut self, flight: Flight) -> u64 {
        let tag = self.tag_next;
        self.tag_next += 1;
        self.in_flight.insert(tag, flight);
        tag
    }

    fn dirty_len(&self, cell: CellNo) -> usize {
        let content = self.work.get(&cell).and_then(|work| work.content.as_ref());
        content.map_or(0, |it| it.len())
    }

    fn write(&mut self, run: Vec<CellNo>, len_bytes: usize) -> Transfer {
        let mut buffer = self.spares.take(len_bytes);
        let mut at = 0;
        for cell in &run {
            let Some(work) = self.work.get_mut(cell) else {
                continue;
            };
            let content = work.content.as_deref().unwrap_or(&[]);
            if let Some(to) = buffer.get_mut(at..at + content.len()) {
                to.copy_from_slice(content);
            }
            at += content.len();
            work.is_dirty = false;
            work.is_write_in_flight = true;
            work.writing.append(&mut work.next);
            work.writing_oldest = earlier(work.writing_oldest, work.next_oldest.take());
        }
        let offset = run.first().map_or(0, |&cell| offset_of(cell));
        let tag = self.tag(Flight::Write(run));
        Transfer::Write {
            tag,
            offset,
            buffer,
        }
    }

    fn read_ended(&mut self, cell: CellNo, read: Option<AlignedBuf>, brought: &mut Brought) {
        let Some(work) = self.work.get_mut(&cell) else {
            return self.spares.keep(read);
        };
        work.is_read_wanted = false;
        brought.ready = std::mem::take(&mut work.readers);
        // What was changed meanwhile is newer than what was read.
        match work.content {
            None => work.content = read.map(Content::of_read),
            Some(_) => self.spares.keep(read),
        }
    }

    fn write_ended(&mut self, cell: CellNo, brought: &mut Brought) {
        let Some(work) = self.work.get_mut(&cell) else {
            return;
        };
        work.is_write_in_flight = false;
        let after = std::mem::take(&mut work.writing);
        brought.written.push((work.writing_oldest.take(), after));
        if work.is_dirty {
            self.dirty_next.insert(cell);
        } else {
            self.settle(cell);
        }
    }
}

/// Byte offset of a cell on the device.
fn offset_of(cell: CellNo) -> u64 {
    cell.0 * BLOCK_BYTES as u64
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

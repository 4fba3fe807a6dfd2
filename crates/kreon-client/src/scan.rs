//! Scans as their users see them.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use kreon_wire::limits::PAGE_ENTRIES_MAX;
use kreon_wire::{GroupId, KeyRange as Held, Reply, Request, ScanPart, SnapshotId};

use crate::call::Kind;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::{Handle, no_table};
use crate::pin::{Pin, take_pin};
use crate::range::{KeyBounds, borrowed, clip, is_empty};
use crate::slot::{Answer, Slot, Value};

/// The first page is short, so that the first entry comes soon.
const FIRST_PAGE_BYTES: u32 = 16 << 10;

/// How often a range is looked for anew that nobody serves any more.
const LOOKS_MAX: u32 = 2;

/// Entries of a range of keys, in order over all groups. While one page is read the next one is on its way.
///
/// Of each group it shows one moment: that of its snapshot, or that at which the scan came to the group. If the primary of
/// the group or the link to it is lost after that, the scan ends with `Closed`: begin another one behind the last key.
/// After an error it has ended.
#[must_use = "a scan does nothing until it is iterated"]
pub struct Scan {
    handle: Handle,
    table: Arc<str>,
    /// What has not been shown.
    left: KeyBounds,
    is_reverse: bool,
    keys_only: bool,
    /// Entries that are still wanted of the servers.
    wanted: usize,
    page_bytes: u32,
    entries: VecDeque<(Value, Value)>,
    ahead: Option<Ahead>,
    /// The snapshot of the part that is being read.
    open: Option<Arc<Pin>>,
    /// Snapshots of groups that hold several parts.
    pins: HashMap<GroupId, Arc<Pin>>,
    /// Of a snapshot: where what lay.
    ranges: Option<Arc<Vec<(GroupId, Held)>>>,
    looks: u32,
    is_over: bool,
}

/// A page that is on its way.
struct Ahead {
    slot: Arc<Slot>,
    body: Vec<u8>,
    pin: Option<Arc<Pin>>,
    range: Held,
}

impl Scan {
    pub(crate) fn new(
        handle: &Handle,
        table: &Arc<str>,
        bounds: KeyBounds,
        is_reverse: bool,
    ) -> Self {
        Self {
            handle: handle.clone(),
            table: table.clone(),
            left: bounds,
            is_reverse,
            keys_only: false,
            wanted: usize::MAX,
            page_bytes: FIRST_PAGE_BYTES.min(handle.page_bytes),
            entries: VecDeque::new(),
            ahead: None,
            open: None,
            pins: HashMap::new(),
            ranges: None,
            looks: 0,
            is_over: false,
        }
    }

    /// The same in snapshots.
    pub(crate) fn within(
        self,
        ranges: &Arc<Vec<(GroupId, Held)>>,
        pins: &HashMap<GroupId, Arc<Pin>>,
    ) -> Self {
        Self {
            ranges: Some(ranges.clone()),
            pins: pins.clone(),
            ..self
        }
    }

    /// The same without values: they are empty, and are not sent.
    pub fn keys_only(mut self) -> Self {
        self.keys_only = true;
        self
    }

    /// The first `entries` of it.
    pub fn limit(mut self, entries: usize) -> Self {
        self.wanted = entries;
        self
    }

    /// The next entry, or nothing if there is none.
    fn step(&mut self) -> Result<Option<(Value, Value)>> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Ok(Some(entry));
            }
            if self.ahead.is_none() && !self.begin()? {
                return Ok(None);
            }
            self.take_page()?;
            // The next page comes while this one is read.
            if !self.entries.is_empty() {
                self.begin()?;
            }
        }
    }

    /// Begins to read the next page; `false` if nothing is left.
    fn begin(&mut self) -> Result<bool> {
        if self.wanted == 0 || is_empty(&borrowed(&self.left)) {
            self.open = None;
            return Ok(false);
        }
        let Some((group, range)) = self.next_range()? else {
            return Ok(false);
        };
        let pin = match &self.open {
            Some(pin) => Some(pin.clone()),
            None => self.pin(group, &range)?,
        };
        let bounds = borrowed(&self.left);
        let Some(bounds) = clip(&bounds, &range) else {
            return Err(Error::strange()); // the range was chosen because it has a part of them
        };
        let snapshot = pin.as_ref().map_or(SnapshotId(0), |pin| pin.snapshot());
        let part = ScanPart {
            table: &self.table,
            bounds,
            is_reverse: self.is_reverse,
            keys_only: self.keys_only,
            entries_max: u32::try_from(self.wanted)
                .unwrap_or(u32::MAX)
                .min(PAGE_ENTRIES_MAX),
            bytes_max: self.page_bytes,
            snapshot,
        };
        let body = Request::Scan(part).body();
        let slot = match &pin {
            Some(pin) => pin.begin(body.clone()),
            None => {
                let place = (&*self.table, range.start.as_slice());
                self.handle.driver().begin(Kind::Read, place, body.clone())
            }
        }?;
        self.page_bytes = self.handle.page_bytes;
        self.ahead = Some(Ahead {
            slot,
            body,
            pin,
            range,
        });
        Ok(true)
    }

    /// The range in which the scan goes on. What nobody holds is not passed over.
    fn next_range(&self) -> Result<Option<(GroupId, Held)>> {
        let handle = &self.handle;
        if let Some(ranges) = &self.ranges {
            return self.choose(ranges);
        }
        let known = self.choose(&handle.ranges(&self.table));
        if known.is_ok() {
            return known;
        }
        handle.driver().refresh()?;
        self.choose(&handle.ranges(&self.table))
    }

    fn choose(&self, ranges: &[(GroupId, Held)]) -> Result<Option<(GroupId, Held)>> {
        if ranges.is_empty() {
            return Err(no_table(&self.table));
        }
        let left = borrowed(&self.left);
        let touches = |(_, range): &&(GroupId, Held)| clip(&left, range).is_some();
        let chosen = match self.is_reverse {
            false => ranges.iter().find(touches),
            true => ranges.iter().rfind(touches),
        };
        let is_next = |range: &Held| match self.is_reverse {
            false => match left.start {
                Bound::Unbounded => range.start.is_empty(),
                Bound::Included(key) | Bound::Excluded(key) => range.start.as_slice() <= key,
            },
            true => match (left.end, &range.end) {
                (_, None) => true,
                (Bound::Unbounded, Some(_)) => false,
                (Bound::Included(key), Some(end)) => key < end.as_slice(),
                (Bound::Excluded(key), Some(end)) => key <= end.as_slice(),
            },
        };
        match chosen {
            Some((group, range)) if is_next(range) || self.follows_on(range, ranges) => {
                Ok(Some((*group, range.clone())))
            }
            _ => {
                let text = "no group is known to hold the next keys";
                Err(Error::new(ErrorKind::Unavailable, text))
            }
        }
    }

    /// Whether only the key of an excluded start lies before the range: its neighbour, which holds it, has no more.
    fn follows_on(&self, range: &Held, ranges: &[(GroupId, Held)]) -> bool {
        let (false, Bound::Excluded(key)) = (self.is_reverse, &self.left.0) else {
            return false;
        };
        let is_before = |held: &Held| held.holds(key) && held.end.as_ref() == Some(&range.start);
        ranges.iter().any(|(_, held)| is_before(held))
    }

    /// The snapshot for a group that holds more than this part of what is left; otherwise the server takes one.
    fn pin(&mut self, group: GroupId, range: &Held) -> Result<Option<Arc<Pin>>> {
        if let Some(pin) = self.pins.get(&group) {
            return Ok(Some(pin.clone()));
        }
        let handle = &self.handle;
        let left = borrowed(&self.left);
        let others = handle.ranges(&self.table);
        let is_other = |(of, other): &(GroupId, Held)| {
            *of == group && other != range && clip(&left, other).is_some()
        };
        if !others.iter().any(is_other) {
            return Ok(None);
        }
        let pin = take_pin(handle, range)?;
        self.pins.insert(group, pin.clone());
        Ok(Some(pin))
    }

    /// Takes the page that is on its way.
    fn take_page(&mut self) -> Result<()> {
        let Some(ahead) = self.ahead.take() else {
            return Ok(());
        };
        let answer = match &ahead.pin {
            Some(pin) => pin.wait(&ahead.slot, &ahead.body)?,
            None => match ahead
                .slot
                .wait()
                .and_then(|answer| answer.reply().map(drop).map(|()| answer))
            {
                Ok(answer) => answer,
                Err(error) => return self.look_again(error),
            },
        };
        self.looks = 0;
        let Reply::Page(page) = answer.reply()? else {
            return Err(Error::strange());
        };
        for (key, value) in page.iter() {
            self.take_entry(key, value)?;
        }
        match page.is_last() {
            true => {
                if let Some(pin) = self.open.take()
                    && !self.pins.values().any(|kept| Arc::ptr_eq(kept, &pin))
                {
                    pin.forget();
                }
                self.leave(&ahead.range);
            }
            false if self.open.is_none() => {
                self.open = Some(self.opened(&ahead, &answer, page.snapshot)?)
            }
            false => {}
        }
        Ok(())
    }

    /// The snapshot in which the next pages are read.
    fn opened(&self, ahead: &Ahead, answer: &Answer, snapshot: SnapshotId) -> Result<Arc<Pin>> {
        match &ahead.pin {
            Some(pin) => Ok(pin.clone()),
            None => Pin::new(&self.handle, answer, snapshot),
        }
    }

    /// Nobody serves the range any more: perhaps it was cut or lies elsewhere. Nothing of it was shown.
    fn look_again(&mut self, error: Error) -> Result<()> {
        self.looks += 1;
        if error.kind() != ErrorKind::Unavailable || self.looks >= LOOKS_MAX {
            return Err(error);
        }
        self.handle.driver().refresh()
    }

    /// Takes an entry, if it is behind all before it and within what was asked for.
    fn take_entry(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let left = borrowed(&self.left);
        let is_left = RangeBounds::<[u8]>::contains(&(left.start, left.end), key);
        if !is_left || self.wanted == 0 {
            let text = "the server sends entries that nobody asked for, or out of order";
            return Err(Error::new(ErrorKind::Corruption, text));
        }
        self.wanted -= 1;
        let edge = match self.is_reverse {
            false => &mut self.left.0,
            true => &mut self.left.1,
        };
        match edge {
            Bound::Excluded(last) => key.clone_into(last),
            edge => *edge = Bound::Excluded(key.to_vec()),
        }
        self.entries.push_back((key.to_vec(), value.to_vec()));
        Ok(())
    }

    /// Nothing more of this range is left.
    fn leave(&mut self, range: &Held) {
        match (self.is_reverse, &range.end) {
            (false, Some(end)) => self.left.0 = Bound::Included(end.clone()),
            (false, None) => self.wanted = 0,
            (true, _) if range.start.is_empty() => self.wanted = 0,
            (true, _) => self.left.1 = Bound::Excluded(range.start.clone()),
        }
    }
}

impl Iterator for Scan {
    type Item = Result<(Value, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let step = self.step();
        if !matches!(step, Ok(Some(_))) {
            self.is_over = true;
            self.ahead = None;
            self.open = None;
        }
        step.transpose()
    }
}

impl FusedIterator for Scan {}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

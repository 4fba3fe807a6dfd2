//! A value that is read a part at a time: its reader holds no more than the part of it that one segment holds, but of a
//! packed value all.
//!
//! Between two parts the reader holds nothing but its snapshot, as a scan: the place of the record is good as long as
//! the view is the one that it was found in, and is looked up again after a change of view.

use std::sync::Arc;

use kreon_base::{Codec, Error, Result};

use super::Reader;
use super::scan_source::Located;
use crate::level::view::ViewSequence;
use crate::regions::RegionState;
use crate::visibility::OpenSnapshot;
use kreon_log::{Fill, ValueAt};

/// Reads one value a part at a time.
pub struct ValueReader {
    reader: Arc<Reader>,
    region: Arc<RegionState>,
    snapshot: Arc<OpenSnapshot>,
    key: Vec<u8>,
    located: Located,
    /// The view in which the value is where `located` says.
    view: ViewSequence,
    len_bytes: u32,
    /// The bytes of the value from `start` on that were read last.
    part: Vec<u8>,
    start: u32,
}

impl ValueReader {
    /// Bytes of the value.
    pub fn len_bytes(&self) -> u32 {
        self.len_bytes
    }

    /// Bytes of the value from `position` on: one at least, unless that is its end. They are verified.
    ///
    /// # Errors
    /// As those of a get.
    pub fn bytes_from(&mut self, position: u32) -> Result<&[u8]> {
        self.reader.storage.lifecycle.check_home()?;
        if position >= self.len_bytes {
            return Ok(&[]);
        }
        let within = position
            .checked_sub(self.start)
            .map(|within| within as usize);
        let skipped = match within.filter(|within| *within < self.part.len()) {
            Some(within) => within,
            None => {
                self.read(position)?;
                position.saturating_sub(self.start) as usize
            }
        };
        let bytes = self.part.get(skipped..).unwrap_or_default();
        match bytes.is_empty() {
            true => Err(gone()),
            false => Ok(bytes),
        }
    }

    fn read(&mut self, position: u32) -> Result<()> {
        let reader = &*self.reader;
        let view = reader.view_of(&self.region)?;
        if view.sequence() != self.view {
            let at = self.snapshot.point();
            let located = reader.locate(&view, &self.region, &self.key, at)?;
            self.located = located.ok_or_else(gone)?;
            self.view = view.sequence();
        }
        self.part.clear();
        if self.located.codec() != Codec::None {
            let fill = Fill(&mut self.part);
            let pages = reader.storage.log_pages();
            let shown = reader.show_logged(&self.region, &self.key, &self.located, &pages, fill);
            self.start = 0;
            return shown.inspect_err(|_| self.part.clear()).map(drop);
        }
        match &self.located {
            Located::Inline(value, _) => {
                self.start = 0;
                self.part.extend_from_slice(value);
            }
            Located::Logged {
                offset,
                value_bytes,
                attributes,
            } => {
                let at = ValueAt {
                    offset: *offset,
                    region: self.region.id,
                    key: &self.key,
                    value_bytes: *value_bytes,
                    has_attributes: !attributes.is_none(),
                };
                let read = reader.storage.log.reader().read_part(
                    &reader.storage.log_pages(),
                    &at,
                    position,
                    &mut self.part,
                );
                self.start = read.inspect_err(|_| self.part.clear())?;
            }
            Located::Deleted | Located::Expired(_) => return Err(gone()),
        }
        Ok(())
    }
}

fn gone() -> Error {
    Error::corruption("a value that a snapshot sees has gone")
}

impl ValueReader {
    /// The value of a key at a snapshot; `None` if there is none.
    ///
    /// # Errors
    /// As those of a get.
    pub fn open(
        reader: &Arc<Reader>,
        region: &Arc<RegionState>,
        key: &[u8],
        snapshot: Arc<OpenSnapshot>,
    ) -> Result<Option<Self>> {
        let view = reader.view_of(region)?;
        let Some(located) = reader.locate(&view, region, key, snapshot.point())? else {
            return Ok(None);
        };
        let codec = located.codec();
        let len_bytes = match &located {
            Located::Inline(value, _) => value.len() as u32,
            Located::Logged {
                value_bytes,
                attributes,
                ..
            } => value_bytes.saturating_sub(attributes.stored_bytes() as u32),
            Located::Deleted | Located::Expired(_) => return Ok(None),
        };
        let mut opened = Self {
            reader: Arc::clone(reader),
            region: Arc::clone(region),
            snapshot,
            key: key.to_vec(),
            located,
            view: view.sequence(),
            len_bytes,
            part: Vec::new(),
            start: 0,
        };
        if codec != Codec::None {
            opened.read(0)?;
            opened.len_bytes = opened.part.len() as u32;
        }
        Ok(Some(opened))
    }
}

//! The regions of a store and their names, which stand in a region of their own.

use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};

use super::face::Store;
use super::handle::check_may_wait;
use super::region::Region;
use crate::partition::Durability;

/// The region of the names: each with the number of its region, and under the empty key the largest number given away.
const NAMES: u32 = 0;

/// Longest name of a region, in bytes.
const NAME_BYTES_MAX: usize = 255;

impl Store {
    /// The region called `name`, created if it does not exist, durably.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is empty or longer than 255 bytes. `OutOfSpace`, `Closed`, `Poisoned`, `Io`.
    pub fn region(&self, name: &str) -> Result<Region> {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let bytes = name.len();
            let text = format!("a region's name of {bytes} bytes: 1 to {NAME_BYTES_MAX} will do");
            return Err(Error::invalid(text));
        }
        check_may_wait()?;
        // In a forked child another thread may hold the lock for ever.
        self.handle.shared()?;
        let names = self.numbered(NAMES);
        let _one_at_a_time = self.handle.making.lock();
        if let Some(number) = number_of(&names, name.as_bytes())? {
            return Ok(self.numbered(number));
        }
        // The count first: a power cut between the two leaves a number without a name, not two names with one number.
        let number = number_of(&names, b"")?.unwrap_or_default() + 1;
        names.put(b"", number.to_le_bytes(), Durability::Sync)?;
        names.put(name.as_bytes(), number.to_le_bytes(), Durability::Sync)?;
        Ok(self.numbered(number))
    }

    /// The region called `name`, which must exist.
    ///
    /// # Errors
    /// `NotFound`: there is none. `Closed`, `Io`.
    pub fn existing_region(&self, name: &str) -> Result<Region> {
        // In a forked child another thread may hold a lock for ever.
        self.handle.shared()?;
        // The empty key has the count.
        let number = match name {
            "" => None,
            name => number_of(&self.numbered(NAMES), name.as_bytes())?,
        };
        let missing = || Error::new(ErrorKind::NotFound, format!("no region {name:?}"));
        number
            .map(|number| self.numbered(number))
            .ok_or_else(missing)
    }

    /// The names of all regions, ascending by their bytes.
    ///
    /// # Errors
    /// `Closed`, `Corruption`, `Io`.
    pub fn region_names(&self) -> Result<Vec<String>> {
        self.handle.shared()?;
        let mut names = Vec::new();
        for name in self.numbered(NAMES).iter().keys() {
            let name = String::from_utf8(name?)
                .map_err(|_| Error::corruption("the name of a region is no UTF-8"))?;
            if !name.is_empty() {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Removes a region with all its pairs: deletes them one by one, durably, and then its name. After a power cut on the way
    /// the region is there with fewer pairs. From its beginning on, puts by handles of the region fail with `NotFound`; only
    /// what a put leaves that began before and is under way all the time is never seen, and its space never comes back.
    ///
    /// # Errors
    /// `NotFound`: there is none. `Closed`, `Poisoned`, `Io`.
    pub fn drop_region(&self, name: &str) -> Result<()> {
        check_may_wait()?;
        self.handle.shared()?;
        let _one_at_a_time = self.handle.making.lock();
        let region = self.existing_region(name)?;
        region.set_dropped(true);
        let outcome = self.clear(&region).and_then(|()| {
            let names = self.numbered(NAMES);
            names.delete(name, Durability::Sync)
        });
        outcome.inspect_err(|_| region.set_dropped(false))
    }

    /// Deletes all pairs of a region, durably.
    fn clear(&self, region: &Region) -> Result<()> {
        // Once more for what was put meanwhile.
        for _ in 0..2 {
            region.delete_range(.., Durability::Buffered)?;
            self.sync()?;
        }
        Ok(())
    }

    fn numbered(&self, number: u32) -> Region {
        Region::new(Arc::clone(&self.handle), number)
    }
}

fn number_of(names: &Region, name: &[u8]) -> Result<Option<u32>> {
    let Some(value) = names.get(name)? else {
        return Ok(None);
    };
    let number = value.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    let damaged = || Error::corruption("the number of a region has too few bytes");
    number.map(Some).ok_or_else(damaged)
}

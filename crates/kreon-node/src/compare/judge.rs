//! What differs between copies, and what was only on its way.

use std::path::Path;
use std::time::Duration;

use kreon_base::Result;
use kreon_engine::Engine;
use kreon_wire::limits::{BLOCK_BYTES, DIGESTS_MAX};
use kreon_wire::{Compared, ServerId};

use super::blocks::digests;
use super::copy::Copy;
use super::places::{Place, Places, is_of_log};

/// Blocks that differ are looked at again after this, and so often at most.
const PAUSE: Duration = Duration::from_millis(500);
const LOOKS_MAX: u32 = 40;

/// What stands still on both sides for so many looks is written by nobody any more: work under way writes the pages that it
/// has taken within less.
const STILL: u32 = 8;

/// Blocks that are looked at again at most; of a copy in which more differ it is known already.
const SUSPECTS_MAX: usize = 4096;

/// A block in which a copy differed.
struct Suspect {
    copy: usize,
    offset: u64,
    digests: (u32, u32),
    /// Looks since something changed.
    still: u32,
}

/// What is compared: the primary's volume and its file, and the copies.
struct Comparison<'a> {
    engine: &'a Engine,
    path: &'a Path,
    copies: &'a mut [Copy],
    /// Whether to go on.
    goes_on: &'a dyn Fn() -> Result<()>,
}

/// Compares copies with the primary's volume, which lies in the file `path`; `goes_on` says between steps whether to.
///
/// # Errors
/// `Closed`: a copy or the primary's office ended meanwhile; `Io`.
pub fn compare(
    engine: &Engine,
    path: &Path,
    copies: &mut [Copy],
    goes_on: &dyn Fn() -> Result<()>,
) -> Result<Compared> {
    let mut comparison = Comparison {
        engine,
        path,
        copies,
        goes_on,
    };
    let places = Places::of(engine)?;
    let mut found = Compared {
        copies: comparison.copies.len() as u64,
        blocks: places.blocks(),
        ..Compared::default()
    };
    let mut suspects = Vec::new();
    for place in &places.0 {
        comparison.look(place, &mut suspects)?;
    }
    let differing = comparison.settle(suspects, &mut found)?;
    found.differing = differing.iter().sum();
    found.worst = comparison.worst(&differing);
    Ok(found)
}

impl Comparison<'_> {
    /// Compares a place in all copies.
    fn look(&mut self, place: &Place, suspects: &mut Vec<Suspect>) -> Result<()> {
        let mut done = 0;
        while done < place.blocks && suspects.len() < SUSPECTS_MAX {
            (self.goes_on)()?;
            let offset = place.offset + done * BLOCK_BYTES;
            let count = (place.blocks - done).min(DIGESTS_MAX.into()) as u32;
            let own = digests(self.path, offset, count)?;
            for (copy, theirs) in self.copies.iter_mut().enumerate() {
                let theirs = theirs.digests(offset, count)?;
                let pairs = own.iter().copied().zip(theirs).enumerate();
                let differing = pairs.filter(|(_, (own, theirs))| own != theirs);
                suspects.extend(differing.map(|(index, digests)| Suspect {
                    copy,
                    offset: offset + index as u64 * BLOCK_BYTES,
                    digests,
                    still: 0,
                }));
            }
            done += u64::from(count);
        }
        Ok(())
    }

    /// Looks at blocks again until nothing changes: how many differ, by copy.
    fn settle(&mut self, mut suspects: Vec<Suspect>, found: &mut Compared) -> Result<Vec<u64>> {
        let mut differing = vec![0; self.copies.len()];
        for _ in 0..LOOKS_MAX {
            if suspects.is_empty() {
                break;
            }
            kreon_sync::sleep(PAUSE);
            let places = Places::of(self.engine)?;
            let mut left = Vec::new();
            for mut suspect in suspects {
                (self.goes_on)()?;
                // What is free by now holds anything.
                let Some(place) = places.find(suspect.offset) else {
                    continue;
                };
                let now = self.digests_of(&suspect)?;
                if now.0 == now.1 {
                    continue;
                }
                suspect.still = if now == suspect.digests {
                    suspect.still + 1
                } else {
                    0
                };
                suspect.digests = now;
                if suspect.still < STILL {
                    left.push(suspect);
                } else if let Some(count) = differing.get_mut(suspect.copy) {
                    *count += u64::from(self.counts(place, &suspect)?);
                }
            }
            suspects = left;
        }
        found.unsettled = suspects.len() as u64;
        Ok(differing)
    }

    /// The server whose copy differs in most blocks; 0 if none does.
    fn worst(&self, differing: &[u64]) -> ServerId {
        let counts = self.copies.iter().zip(differing);
        let worst = counts.max_by_key(|(_, count)| **count);
        match worst {
            Some((copy, count)) if *count > 0 => copy.member.server,
            _ => ServerId(0),
        }
    }

    fn digests_of(&mut self, suspect: &Suspect) -> Result<(u32, u32)> {
        let own = digests(self.path, suspect.offset, 1)?;
        let theirs = match self.copies.get_mut(suspect.copy) {
            Some(copy) => copy.digests(suspect.offset, 1)?,
            None => own.clone(),
        };
        Ok((
            own.first().copied().unwrap_or_default(),
            theirs.first().copied().unwrap_or_default(),
        ))
    }

    /// Whether copies are to have the block in common.
    fn counts(&self, place: &Place, suspect: &Suspect) -> Result<bool> {
        let counts = match place.log {
            Some(segment) => is_of_log(self.path, segment, suspect.offset)?,
            None => true,
        };
        if counts && let Some(copy) = self.copies.get(suspect.copy) {
            tracing::error!(
                server = copy.member.server.0,
                offset = suspect.offset,
                is_log = place.log.is_some(),
                "a copy differs from that of the primary"
            );
        }
        Ok(counts)
    }
}

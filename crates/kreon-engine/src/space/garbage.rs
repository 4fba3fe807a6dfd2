//! Unspilled garbage: an estimate of the bytes that writes since the last freeze made dead, which no spill has counted.
//!
//! A record that replaces an older one of L0' or of the trees makes that dead, about as large as itself; the first one of
//! its key makes nothing dead. A writer notes the key that crosses each border of `SAMPLE_BYTES` of the log, and whether
//! L0' had it; whether trees have it is asked when it matters, of what is in memory: index nodes and their filters. So a
//! load of new keys is not spilled before L0' is full, and overwrites as soon as they hide too much.

use kreon_base::{Lsn, RegionId};

/// Longer keys are not noted, as that takes memory, but taken for known ones.
const NOTED_KEY_BYTES_MAX: usize = 256;

/// What was noted since the last freeze.
#[derive(Default)]
pub struct UnspilledGarbage {
    /// Where in the log that was.
    since: Lsn,
    /// What the records that were judged stand for, and what of it is dead.
    judged_bytes: u64,
    dead_bytes: u64,
    open: Vec<Noted>,
}

/// A record of L0' that stands for some bytes of the log.
pub struct Noted {
    /// Where.
    pub region: RegionId,
    /// Its key.
    pub key: Vec<u8>,
    /// Bytes of the log that it stands for.
    pub bytes: u64,
}

impl UnspilledGarbage {
    /// Nothing was noted since a freeze at `end`.
    pub fn since(end: Lsn) -> Self {
        Self {
            since: end,
            ..Self::default()
        }
    }

    /// A record that stands for `bytes` of the log, whose key L0' had or not.
    pub fn note(&mut self, bytes: u64, region: RegionId, key: &[u8], was_known: bool) {
        match was_known || key.len() > NOTED_KEY_BYTES_MAX {
            true => self.judged(bytes, true),
            false => self.open.push(Noted {
                region,
                key: key.to_vec(),
                bytes,
            }),
        }
    }

    /// The last freeze, and the records that are not judged, which are judged by the caller now.
    pub fn take_open(&mut self) -> (Lsn, Vec<Noted>) {
        (self.since, std::mem::take(&mut self.open))
    }

    /// Records that were taken after the freeze at `since` are dead or not; what of all that was judged is dead, and all
    /// of it. None: there was another freeze meanwhile.
    pub fn judge(&mut self, since: Lsn, judged: &[(u64, bool)]) -> Option<(u64, u64)> {
        if self.since != since {
            return None;
        }
        for &(bytes, is_dead) in judged {
            self.judged(bytes, is_dead);
        }
        Some((self.dead_bytes, self.judged_bytes))
    }

    fn judged(&mut self, bytes: u64, is_dead: bool) {
        self.judged_bytes += bytes;
        self.dead_bytes += if is_dead { bytes } else { 0 };
    }
}

//! The memory of a store that is open for reading only. It spills nothing, so L0 stays as the opening found it: what L0
//! does not take of the budget, and what only writers use, goes to frames.

use kreon_base::{Error, Result, SEGMENT_BYTES};

use super::{MIB, MemorySplit, Options};

/// Fewer bytes of frames are no cache.
const MAPPING_BYTES_MIN: usize = MIB / 2;

/// What grows with the budget is less than a part in so many of it.
const GROWING_SHARE: u64 = 24;

/// Roundings of these parts.
const SLACK_BYTES: u64 = 64 << 10;

/// Nothing is collected; its buffers have a least size.
const COLLECTOR_BYTES: usize = MIB / 4;

/// L0 as an opening has filled it.
#[derive(Clone, Copy, Debug)]
pub struct Replayed {
    /// Bytes in use.
    pub l0_bytes: usize,
    /// What had no room would take, at the most; 0: everything is there.
    pub left_out_bytes: u64,
}

impl Options {
    /// How large L0 may become when the store is opened for reading.
    pub(crate) fn l0_bytes_of_reader(&self, split: &MemorySplit) -> usize {
        let left_bytes = self.memory_bytes.saturating_sub(self.fixed(split).1);
        let within = left_bytes.saturating_sub(MAPPING_BYTES_MIN);
        self.replay_bytes_max.unwrap_or(within)
    }

    /// The split of the budget once it is known what L0 takes.
    ///
    /// # Errors
    /// `InvalidArgument` if something was left out: how much memory would do.
    pub(crate) fn split_of_reader(
        &self,
        split: &MemorySplit,
        replayed: Replayed,
    ) -> Result<MemorySplit> {
        let (split_of_reader, fixed_bytes) = self.fixed(split);
        let taken = fixed_bytes.saturating_add(replayed.l0_bytes);
        if replayed.left_out_bytes > 0 {
            let needed = (taken + MAPPING_BYTES_MIN) as u64 + replayed.left_out_bytes;
            let needed = needed.max(self.memory_bytes as u64);
            // Buffers for scans and notes of dead records are shares of the budget, and grow with it.
            let more = needed - self.memory_bytes as u64;
            let needed = needed + more.div_ceil(GROWING_SHARE) + SLACK_BYTES;
            return Err(Error::invalid(format!(
                "what the log has behind the last spill does not fit in memory: with a memory_bytes of {needed} it does \
                 (it is {} now), or open the store for writing once",
                self.memory_bytes
            )));
        }
        // Beyond the budget L0 leaves frames the share that they have otherwise.
        let least = match self.replay_bytes_max {
            Some(_) => split.mapping_bytes,
            None => MAPPING_BYTES_MIN,
        };
        Ok(MemorySplit {
            mapping_bytes: self.memory_bytes.saturating_sub(taken).max(least),
            ..split_of_reader
        })
    }

    /// The split but for L0 and frames, and the bytes of that.
    fn fixed(&self, split: &MemorySplit) -> (MemorySplit, usize) {
        let split = MemorySplit {
            log_bytes: SEGMENT_BYTES as usize,
            collector_bytes: COLLECTOR_BYTES,
            ..*split
        };
        let fixed_bytes = split.log_bytes
            + split.collector_bytes
            + split.dead_record_bytes
            + split.scan_bytes
            + self.credit_bytes();
        (split, fixed_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(replay_bytes_max: Option<usize>) -> (Options, MemorySplit) {
        let options = Options {
            memory_bytes: 32 * MIB,
            replay_bytes_max,
            ..Options::default()
        };
        let split = options.split().unwrap();
        (options, split)
    }

    fn replayed(l0_bytes: usize, left_out_bytes: u64) -> Replayed {
        Replayed {
            l0_bytes,
            left_out_bytes,
        }
    }

    #[test]
    fn frames_get_what_l0_leaves_of_the_budget() {
        let (options, split) = options(None);
        let frames = |l0_bytes| {
            let split = options.split_of_reader(&split, replayed(l0_bytes, 0));
            split.unwrap().mapping_bytes
        };
        assert!(frames(0) > split.mapping_bytes + 2 * split.l0_bytes);
        assert_eq!(frames(0) - frames(5 * MIB), 5 * MIB);
        let most = options.l0_bytes_of_reader(&split);
        assert!(most > 20 * MIB);
        assert_eq!(frames(most), MAPPING_BYTES_MIN);
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_tells_a_budget_that_does() {
        let (options, split) = options(None);
        let most = options.l0_bytes_of_reader(&split);
        let outcome = options.split_of_reader(&split, replayed(most, 10 * MIB as u64));
        let told = outcome.unwrap_err().to_string();
        let (_, behind) = told.split_once("a memory_bytes of ").unwrap();
        let needed: usize = behind.split_once(' ').unwrap().0.parse().unwrap();
        assert!(needed < options.memory_bytes + 11 * MIB, "{told}");
        let larger = Options {
            memory_bytes: needed,
            ..options
        };
        let split = larger.split().unwrap();
        assert!(larger.l0_bytes_of_reader(&split) >= most + 10 * MIB);
    }

    #[test]
    fn beyond_the_budget_frames_keep_their_share() {
        let (options, split) = options(Some(usize::MAX));
        assert_eq!(options.l0_bytes_of_reader(&split), usize::MAX);
        let found = options.split_of_reader(&split, replayed(100 * MIB, 0));
        assert_eq!(found.unwrap().mapping_bytes, split.mapping_bytes);
    }
}

//! What a member that does not count was not sent.
//!
//! Nobody waits for such a member: what its stream has no room for is noted here, and is read from the primary's file
//! later. What is sent to it meanwhile is newer, and takes the place of what is noted.

use std::ops::Range;

use kreon_base::Lsn;
use kreon_wire::StreamPacket;

use crate::blocks::Blocks;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// The volume is so long; comes before everything else.
    pub len_bytes: Option<u64>,
    /// Blocks that have space.
    pub space: Blocks,
    /// Blocks that were written.
    pub blocks: Blocks,
    /// Blocks that are being read from the file, and that nothing has changed since.
    pub reading: Blocks,
    /// The log from here on has left memory: the tap does not send it.
    pub log_from: Option<Lsn>,
}

impl Owed {
    /// Whether the member has everything, but for log that is in memory.
    pub fn is_nothing(&self) -> bool {
        self.len_bytes.is_none()
            && self.space.is_empty()
            && self.blocks.is_empty()
            && self.reading.is_empty()
            && self.log_from.is_none()
    }

    /// Notes a packet that the stream had no room for.
    pub fn miss(&mut self, packet: &StreamPacket<'_>) {
        self.forget(packet);
        let range = range_of(packet);
        match packet {
            StreamPacket::Grow { len_bytes } => {
                self.len_bytes = self.len_bytes.max(Some(*len_bytes));
            }
            StreamPacket::Allocate { .. } => self.space.add(&range),
            StreamPacket::Pages { .. } => self.blocks.add(&range),
            // A discarded range reads as zeroes or as before: it keeps its space until it is used again.
            _ => {}
        }
    }

    /// The packet was sent, or noted: what was noted before is older.
    pub fn forget(&mut self, packet: &StreamPacket<'_>) {
        let range = range_of(packet);
        match packet {
            StreamPacket::Grow { len_bytes } => {
                self.len_bytes = self.len_bytes.filter(|owed| owed > len_bytes);
            }
            StreamPacket::Allocate { .. } => self.space.remove(&range),
            StreamPacket::Pages { .. } | StreamPacket::Log { .. } => self.forget_blocks(&range),
            StreamPacket::Discard { .. } => {
                self.forget_blocks(&range);
                self.space.remove(&range);
            }
            StreamPacket::Copy { .. } | StreamPacket::Flush { .. } | StreamPacket::Complete => {}
        }
    }

    fn forget_blocks(&mut self, range: &Range<u64>) {
        self.blocks.remove(range);
        self.reading.remove(range);
    }

    /// The next blocks to be read, up to `bytes_max`; they are being read from now on.
    pub fn begin_read(&mut self, bytes_max: u64) -> Option<Range<u64>> {
        let range = self.blocks.first_run(bytes_max)?;
        self.blocks.remove(&range);
        self.reading.add(&range);
        Some(range)
    }
}

fn range_of(packet: &StreamPacket<'_>) -> Range<u64> {
    let range = packet.range().map(|r| r.offset..r.offset + r.len_bytes);
    range.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(offset: u64, bytes: &[u8]) -> StreamPacket<'_> {
        StreamPacket::Pages { offset, bytes }
    }

    #[test]
    fn what_is_sent_or_written_anew_takes_the_place_of_what_is_read() {
        let mut owed = Owed::default();
        let block = [1; 4096];
        for number in 0..4 {
            owed.miss(&pages(number * 4096, &block));
        }
        assert_eq!(owed.begin_read(3 * 4096), Some(0..3 * 4096));
        owed.forget(&pages(0, &block));
        owed.miss(&pages(4096, &block));
        assert_eq!(
            owed.reading.parts(&(0..3 * 4096), true),
            std::slice::from_ref(&(8192..12288))
        );
        // Written while it was read: it is to be read again.
        assert_eq!(owed.blocks.first_run(1 << 20), Some(4096..8192));
        owed.forget(&StreamPacket::Discard {
            offset: 0,
            len_bytes: 16384,
        });
        assert!(owed.is_nothing());
    }

    #[test]
    fn a_length_and_space_stay_owed_until_as_much_was_sent() {
        let mut owed = Owed::default();
        owed.miss(&StreamPacket::Grow { len_bytes: 8192 });
        owed.miss(&StreamPacket::Grow { len_bytes: 4096 });
        owed.forget(&StreamPacket::Grow { len_bytes: 4096 });
        assert_eq!(owed.len_bytes, Some(8192));
        let (offset, len_bytes) = (4096, 4096);
        owed.miss(&StreamPacket::Allocate { offset, len_bytes });
        owed.forget(&StreamPacket::Grow { len_bytes: 8192 });
        assert!(!owed.is_nothing());
        owed.forget(&StreamPacket::Allocate { offset, len_bytes });
        assert!(owed.is_nothing());
    }
}

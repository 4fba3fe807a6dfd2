//! The segments of an open log: which it has, which it could do without, and how far it may write.

use kreon_base::{Error, Result, SegmentId};

use super::log::Log;

impl Log {
    /// From now on room in the current segment is asked for anew. No record may be appended meanwhile, but by those that
    /// hold the roll lock.
    pub fn restrain(&self) {
        self.appender.roller.restrain();
    }

    /// Bytes that may be appended before more room is asked for.
    pub fn granted_bytes(&self) -> u64 {
        u64::from(self.reader().buffers.current().rest_bytes())
    }

    /// Gives up the segments that were reserved ahead, but for the next one, which gives up its blocks. Returns them.
    ///
    /// # Errors
    /// `Corruption`: the volume does not know the next one.
    pub fn give_up_ahead(&self) -> Result<Vec<SegmentId>> {
        self.appender.roller.give_up_ahead()
    }

    /// Adds a segment of moved records to the table: its records are read by their offsets like all others.
    pub fn adopt(&self, segment: SegmentId, sequence: u64) {
        self.reader().table.insert(segment, sequence);
    }

    /// The segments that hold records, with their sequences, in the order of the log; the last one is
    /// open.
    pub fn segments(&self) -> Vec<(SegmentId, u64)> {
        self.reader().table.list()
    }

    /// Removes a segment that no index points at any more and that replay no longer needs. The open one
    /// stays.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not a segment of the log, or not wholly on the device.
    pub fn release(&self, segment: SegmentId) -> Result<()> {
        let Some(sequence) = self.reader().table.sequence(segment) else {
            return Err(Error::invalid(format!("{segment} is not of the log")));
        };
        let in_memory = self.reader().buffers.by_sequence(sequence);
        let in_use = in_memory.is_some_and(|buffered| !buffered.is_complete());
        if in_use || self.reader().buffers.current().sequence() == sequence {
            return Err(Error::invalid(format!(
                "{segment} of the log is still being written"
            )));
        }
        // Its buffer stays in the chain, which must have no gap; that sequence is looked up no more.
        self.reader().table.remove(segment);
        Ok(())
    }
}

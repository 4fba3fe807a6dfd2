//! A log that is only read: the store is open for reading only.

use kreon_base::Result;
use kreon_device::Backing;

use super::buffers::Buffers;
use super::history::{LogHistory, resume_behind};
use super::home::{LogHome, LogOptions};
use super::log::Log;
use super::poison::Poison;
use super::positions::Positions;
use super::resume::Resume;
use super::segments::SegmentTable;
use super::supply::Supply;

impl Log {
    /// Opens a log to read it up to the end of its `history`, which replay found. It takes no segment, writes nothing ever,
    /// and refuses all records with `ReadOnly`. Everything up to its end counts as durable: nobody can tell how much of it
    /// a cut of the power would take, and nobody adds to it.
    ///
    /// # Errors
    /// `Corruption` if the segment in which it ends is unknown.
    pub fn open_to_read(home: LogHome, history: LogHistory, options: LogOptions) -> Result<Self> {
        let end = history.end;
        // A whole page may be read at the end, as the device keeps what it has.
        let resume = Resume::at(resume_behind(end));
        let table = SegmentTable::new(&history.segments);
        let supply = Supply::new(&home, resume.next_sequence(), Vec::new());
        // One buffer, which stands for the end.
        let buffers = Buffers::open(1, Backing::Sparse, home.elsewhere(), |buffer| {
            resume.stand(&home, &table, buffer)
        })?;
        Ok(Self::new(
            home,
            history,
            &options,
            (resume, supply),
            (table, buffers),
            (Positions::new(end), Poison::of_reader()),
        ))
    }
}

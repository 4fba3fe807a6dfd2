//! Segments from the device, one read ahead.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

use kreon_base::{Error, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::{AlignedBuf, Device, Read};

/// Bytes of one read; a segment is eight of them at once.
const READ_BYTES: usize = 256 << 10;

/// Reads whole segments in a thread of its own, so that the next one comes while this one is
/// replayed.
pub(super) struct Source {
    requests: Sender<(SegmentId, AlignedBuf)>,
    loaded: Receiver<(SegmentId, Result<AlignedBuf>)>,
    /// Asked for and not yet received.
    ahead: Option<SegmentId>,
    spare: Vec<AlignedBuf>,
}

impl Source {
    /// Starts the thread; it ends with the source.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        device: &'scope dyn Device,
    ) -> Result<Self> {
        let (requests, requested) = channel::<(SegmentId, AlignedBuf)>();
        let (send, loaded) = channel();
        let read_all = move || {
            for (segment, mut buffer) in requested {
                let outcome = load(device, segment, &mut buffer).map(|()| buffer);
                if send.send((segment, outcome)).is_err() {
                    return;
                }
            }
        };
        Builder::new()
            .name("kreon-replay".into())
            .spawn_scoped(scope, read_all)
            .map_err(|error| Error::io("start a thread that reads the log", error))?;
        Ok(Self {
            requests,
            loaded,
            ahead: None,
            spare: Vec::new(),
        })
    }

    /// The bytes of `segment`; zeroes where the volume ends before.
    pub fn segment(&mut self, segment: SegmentId) -> Result<AlignedBuf> {
        loop {
            self.read_ahead(segment);
            let (found, outcome) = self.loaded.recv().map_err(|_| gone())?;
            self.ahead = None;
            match outcome {
                outcome if found == segment => return outcome,
                Ok(buffer) => self.recycle(buffer),
                Err(_) => {}
            }
        }
    }

    /// Begins to read `segment`, unless another one is being read.
    pub fn read_ahead(&mut self, segment: SegmentId) {
        if self.ahead.is_none() {
            let buffer = self.spare.pop();
            let buffer = buffer.unwrap_or_else(|| AlignedBuf::new(SEGMENT_BYTES as usize));
            if self.requests.send((segment, buffer)).is_ok() {
                self.ahead = Some(segment);
            }
        }
    }

    /// Takes the memory of a segment back.
    pub fn recycle(&mut self, buffer: AlignedBuf) {
        self.spare.push(buffer);
    }
}

fn gone() -> Error {
    Error::invalid("the thread that reads the log ended early")
}

/// Reads a segment. What lies behind the end of the volume was never durable: it counts as zeroes.
fn load(device: &dyn Device, segment: SegmentId, buffer: &mut AlignedBuf) -> Result<()> {
    let offset = segment.offset_bytes();
    let there = device.len_bytes().saturating_sub(offset).min(SEGMENT_BYTES);
    let there = there - there % u64::from(device.block_bytes());
    let (read, missing) = buffer.split_at_mut(there as usize);
    missing.fill(0);
    let parts = read.chunks_mut(READ_BYTES).enumerate();
    let mut reads: Vec<_> = parts
        .map(|(index, part)| Read::new(offset + (index * READ_BYTES) as u64, part))
        .collect();
    if reads.is_empty() {
        return Ok(());
    }
    device
        .read(&mut reads)
        .map_err(|error| error.within(format!("replay of {segment}")))
}

//! Segments from the device, one read ahead.

use std::ops::Deref;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

use kreon_base::{Error, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::{AlignedBuf, Backing, Device, Read};

/// Bytes of one read; a segment is eight of them at once.
const READ_BYTES: usize = 256 << 10;

/// The same where memory is to be sparse.
const SPARSE_READ_BYTES: usize = 32 << 10;

/// A segment in memory.
pub(super) struct Loaded {
    bytes: AlignedBuf,
    /// All bytes from here on are zeroes, and were not touched.
    filled: usize,
}

impl Loaded {
    /// The bytes up to the end of what may be other than zero.
    pub fn filled(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or(&self.bytes)
    }
}

impl Deref for Loaded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads whole segments: in a thread of its own, so that the next one comes while this one is
/// replayed, or, where memory is to be sparse, in the calling one.
pub(super) struct Source<'a> {
    device: &'a dyn Device,
    aside: Option<Aside>,
    spare: Vec<AlignedBuf>,
}

/// The thread.
struct Aside {
    requests: Sender<(SegmentId, AlignedBuf)>,
    loaded: Receiver<(SegmentId, Result<AlignedBuf>)>,
    /// Asked for and not yet received.
    ahead: Option<SegmentId>,
}

impl<'a> Source<'a> {
    /// Starts the thread, if there is to be one; it ends with the source.
    pub fn start(
        scope: &'a Scope<'a, '_>,
        device: &'a dyn Device,
        backing: Backing,
    ) -> Result<Self> {
        let aside = match backing {
            Backing::Ahead => Some(Aside::start(scope, device)?),
            Backing::Sparse => None,
        };
        Ok(Self {
            device,
            aside,
            spare: Vec::new(),
        })
    }

    /// The bytes of `segment`; zeroes where the volume ends before.
    pub fn segment(&mut self, segment: SegmentId) -> Result<Loaded> {
        loop {
            self.read_ahead(segment);
            let Some(aside) = &mut self.aside else {
                return load_sparsely(self.device, segment);
            };
            let (found, outcome) = aside.loaded.recv().map_err(|_| gone())?;
            aside.ahead = None;
            match outcome {
                outcome if found == segment => {
                    return outcome.map(|bytes| Loaded {
                        filled: bytes.len(),
                        bytes,
                    });
                }
                Ok(buffer) => self.spare.push(buffer),
                Err(_) => {}
            }
        }
    }

    /// Begins to read `segment`, unless another one is being read, or no thread reads beside the caller.
    pub fn read_ahead(&mut self, segment: SegmentId) {
        if let Some(aside) = &mut self.aside
            && aside.ahead.is_none()
        {
            let buffer = self.spare.pop();
            let buffer = buffer.unwrap_or_else(|| AlignedBuf::new(SEGMENT_BYTES as usize));
            if aside.requests.send((segment, buffer)).is_ok() {
                aside.ahead = Some(segment);
            }
        }
    }

    /// Takes the memory of a segment back.
    pub fn recycle(&mut self, loaded: Loaded) {
        // Fresh sparse memory is cheaper than zeroing this.
        if self.aside.is_some() {
            self.spare.push(loaded.bytes);
        }
    }
}

impl Aside {
    fn start<'a>(scope: &'a Scope<'a, '_>, device: &'a dyn Device) -> Result<Self> {
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
        })
    }
}

fn gone() -> Error {
    Error::invalid("the thread that reads the log ended early")
}

/// Reads a segment. Bytes behind the end of the volume were never durable: they count as zeroes.
fn load(device: &dyn Device, segment: SegmentId, buffer: &mut AlignedBuf) -> Result<()> {
    let (read, missing) = buffer.split_at_mut(there(device, segment));
    missing.fill(0);
    let parts = read.chunks_mut(READ_BYTES);
    read_parts(device, segment, parts.zip((0..).step_by(READ_BYTES)))
}

/// The same into fresh memory, touched only where the device does not know it to be zeroes.
fn load_sparsely(device: &dyn Device, segment: SegmentId) -> Result<Loaded> {
    let mut bytes = AlignedBuf::with_backing(SEGMENT_BYTES as usize, Backing::Sparse);
    let mut filled = 0;
    let read = bytes.split_at_mut(there(device, segment)).0;
    let parts = read.chunks_mut(SPARSE_READ_BYTES);
    let parts = parts.zip((0..).step_by(SPARSE_READ_BYTES));
    let parts = parts.filter(|(part, within)| {
        let offset = segment.offset_bytes() + *within as u64;
        let is_blank = device.is_blank(offset, part.len() as u64);
        if !is_blank {
            filled = within + part.len();
        }
        !is_blank
    });
    read_parts(device, segment, parts)?;
    Ok(Loaded { bytes, filled })
}

/// Bytes of a segment that the device has.
fn there(device: &dyn Device, segment: SegmentId) -> usize {
    let there = device.len_bytes().saturating_sub(segment.offset_bytes());
    let there = there.min(SEGMENT_BYTES);
    (there - there % u64::from(device.block_bytes())) as usize
}

/// Reads parts of a segment, each with where it begins.
fn read_parts<'a>(
    device: &dyn Device,
    segment: SegmentId,
    parts: impl Iterator<Item = (&'a mut [u8], usize)>,
) -> Result<()> {
    let offset = segment.offset_bytes();
    let mut reads: Vec<_> = parts
        .map(|(part, within)| Read::new(offset + within as u64, part))
        .collect();
    if reads.is_empty() {
        return Ok(());
    }
    device
        .read(&mut reads)
        .map_err(|error| error.within(format!("replay of {segment}")))
}

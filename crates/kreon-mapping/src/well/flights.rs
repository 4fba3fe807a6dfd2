//! Frames that the device fills while nobody waits in a call.

use std::io::IoSliceMut;
use std::time::Duration;

use kreon_base::PAGE_BYTES;
use kreon_device::{Ended, ReadQueue};
use parking_lot::Mutex;

use super::frames::FreeFrame;
use super::space::Space;

/// How long the end of a flight is waited for at a time.
const LANDING_PATIENCE: Duration = Duration::from_millis(10);

/// Reads of consecutive bytes into frames, each with cargo of its owner's. Once begun, a flight owns its
/// frames until it has [landed](Self::land): who began it may forget about it.
pub(crate) struct Flights<T> {
    queue: Box<dyn ReadQueue>,
    places: Mutex<Places<T>>,
}

struct Places<T> {
    /// Flights by their tags.
    taken: Vec<Option<Flight<T>>>,
    free: Vec<usize>,
}

struct Flight<T> {
    frames: Vec<FreeFrame>,
    len_bytes: usize,
    /// The kernel may read this array until it has taken the read.
    _buffers: Box<[IoSliceMut<'static>]>,
    cargo: T,
}

/// What a flight brought.
pub(crate) struct Landed<T> {
    /// Filled one after the other.
    pub frames: Vec<FreeFrame>,
    /// What was given along.
    pub cargo: T,
    /// Whether all bytes came.
    pub is_whole: bool,
}

impl<T> Flights<T> {
    /// # Safety
    /// This is dropped before the [`Space`] whose frames it is given.
    pub(crate) unsafe fn new(queue: Box<dyn ReadQueue>) -> Self {
        let places = Places {
            taken: Vec::new(),
            free: Vec::new(),
        };
        Self {
            queue,
            places: Mutex::new(places),
        }
    }

    /// The queue, to submit and to wait.
    pub(crate) fn queue(&self) -> &dyn ReadQueue {
        &*self.queue
    }

    /// Begins to read `len_bytes` from `offset_bytes` on into `frames`, one after the other. They come back if
    /// there is no room in flight.
    pub(crate) fn begin(
        &self,
        space: &Space,
        offset_bytes: u64,
        len_bytes: usize,
        mut frames: Vec<FreeFrame>,
        cargo: T,
    ) -> Result<(), (Vec<FreeFrame>, T)> {
        debug_assert!(len_bytes.div_ceil(PAGE_BYTES) == frames.len());
        let starts = (0..len_bytes).step_by(PAGE_BYTES);
        let mut buffers: Box<[_]> = frames
            .iter_mut()
            .zip(starts)
            .map(|(frame, start)| buffer_of(space, frame, len_bytes - start))
            .collect();
        let mut places = self.places.lock();
        let place = places.vacant();
        // SAFETY: until the tag is reaped, the tokens of the frames and the array stay in `taken`, where
        // nobody touches them; nobody else has access to a frame whose token exists. Should this be
        // dropped, it waits; the space, and with it the frames' memory, is dropped later (`new`).
        if !unsafe { self.queue.push(place as u64, offset_bytes, &mut buffers) } {
            places.free.push(place);
            return Err((frames, cargo));
        }
        let flight = Some(Flight {
            frames,
            len_bytes,
            _buffers: buffers,
            cargo,
        });
        if let Some(vacant) = places.taken.get_mut(place) {
            *vacant = flight;
        }
        Ok(())
    }

    /// Takes the flights that have ended.
    pub(crate) fn land(&self) -> Vec<Landed<T>> {
        let mut ended = Vec::new();
        self.queue.reap(&mut ended);
        if ended.is_empty() {
            return Vec::new();
        }
        let mut places = self.places.lock();
        let landed = ended.into_iter().filter_map(|ended| places.land(ended));
        landed.collect()
    }
}

impl<T> Places<T> {
    /// A place for one more, with its memory: nothing is to fail between a push and taking the place.
    fn vacant(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.taken.push(None);
            self.taken.len() - 1
        })
    }

    fn land(&mut self, ended: Ended) -> Option<Landed<T>> {
        let place = ended.tag as usize;
        let flight = self.taken.get_mut(place)?.take()?;
        self.free.push(place);
        Some(Landed {
            frames: flight.frames,
            cargo: flight.cargo,
            is_whole: ended.moved_bytes == flight.len_bytes,
        })
    }
}

impl<T> Drop for Flights<T> {
    fn drop(&mut self) {
        // The cargo goes when nothing is in flight any more: its drop is not ours, and may panic.
        let mut landed = Vec::new();
        while self.queue.in_flight() > 0 {
            self.queue.wait(1, LANDING_PATIENCE);
            landed.append(&mut self.land());
        }
    }
}

/// The frame's memory, up to `len_bytes` of it.
fn buffer_of(space: &Space, frame: &mut FreeFrame, len_bytes: usize) -> IoSliceMut<'static> {
    let bytes: *mut [u8] = &mut space.bytes_mut(frame)[..len_bytes.min(PAGE_BYTES)];
    // SAFETY: the memory is that of a frame, which lives as long as the space. Exclusive: the frame's token
    // is in the hands of the caller, who makes no other reference before it is done with this one.
    IoSliceMut::new(unsafe { &mut *bytes })
}

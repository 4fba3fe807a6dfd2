//! Frames that the device fills while no thread waits for it in a call.

use std::io::IoSliceMut;
use std::time::Duration;

use kreon_base::PAGE_BYTES;
use kreon_device::{Ended, ReadQueue};
use parking_lot::Mutex;

use super::frames::FreeFrame;
use super::space::FrameSpace;

/// How long the drop of flights sleeps at a time until they have ended.
const LANDING_PATIENCE: Duration = Duration::from_millis(10);

/// Reads of consecutive bytes into frames, each with a context of its owner. From its begin until it has
/// [landed](Self::land) a flight owns its frames.
pub(crate) struct Flights<T> {
    queue: Box<dyn ReadQueue>,
    slots: Mutex<FlightSlots<T>>,
}

struct FlightSlots<T> {
    /// Flights by their tags.
    taken: Vec<Option<Flight<T>>>,
    free: Vec<usize>,
}

struct Flight<T> {
    frames: Vec<FreeFrame>,
    len_bytes: usize,
    /// The kernel may read this array until it has taken the read.
    _buffers: Box<[IoSliceMut<'static>]>,
    context: T,
}

/// What a flight brought.
pub(crate) struct Landed<T> {
    /// Filled one after the other.
    pub frames: Vec<FreeFrame>,
    /// The context that it was begun with.
    pub context: T,
    /// Whether all bytes arrived.
    pub is_whole: bool,
}

impl<T> Flights<T> {
    /// # Safety
    /// This is dropped before the [`FrameSpace`] whose frames it is given.
    pub(crate) unsafe fn new(queue: Box<dyn ReadQueue>) -> Self {
        let slots = FlightSlots {
            taken: Vec::new(),
            free: Vec::new(),
        };
        Self {
            queue,
            slots: Mutex::new(slots),
        }
    }

    /// The queue, to submit and to wait.
    pub(crate) fn queue(&self) -> &dyn ReadQueue {
        &*self.queue
    }

    /// Begins to read `len_bytes` from `offset_bytes` on into `frames`, one after the other. Frames and context come back
    /// if there is no room in flight.
    pub(crate) fn begin(
        &self,
        space: &FrameSpace,
        offset_bytes: u64,
        len_bytes: usize,
        mut frames: Vec<FreeFrame>,
        context: T,
    ) -> Result<(), (Vec<FreeFrame>, T)> {
        debug_assert!(len_bytes.div_ceil(PAGE_BYTES) == frames.len());
        let starts = (0..len_bytes).step_by(PAGE_BYTES);
        let mut buffers: Box<[_]> = frames
            .iter_mut()
            .zip(starts)
            .map(|(frame, start)| buffer_of(space, frame, len_bytes - start))
            .collect();
        let mut slots = self.slots.lock();
        let slot = slots.vacant();
        // SAFETY: until the tag is reaped, the tokens of the frames and the array stay in `taken`, where
        // nobody touches them; nobody else has access to a frame whose token exists. Should this be
        // dropped, it waits; the space, and with it the frames' memory, is dropped later (`new`).
        if !unsafe { self.queue.push(slot as u64, offset_bytes, &mut buffers) } {
            slots.free.push(slot);
            return Err((frames, context));
        }
        let flight = Some(Flight {
            frames,
            len_bytes,
            _buffers: buffers,
            context,
        });
        debug_assert!(slots.taken[slot].is_none(), "two flights with one tag");
        if let Some(vacant) = slots.taken.get_mut(slot) {
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
        let mut slots = self.slots.lock();
        let landed = ended.into_iter().filter_map(|ended| slots.land(ended));
        landed.collect()
    }
}

impl<T> FlightSlots<T> {
    /// A slot for one more, allocated: nothing may fail between a push and taking the slot.
    fn vacant(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.taken.push(None);
            self.taken.len() - 1
        })
    }

    fn land(&mut self, ended: Ended) -> Option<Landed<T>> {
        let slot = ended.tag as usize;
        let flight = self.taken.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some(Landed {
            frames: flight.frames,
            context: flight.context,
            is_whole: ended.moved_bytes == flight.len_bytes,
        })
    }
}

impl<T> Drop for Flights<T> {
    fn drop(&mut self) {
        // Contexts are dropped when nothing is in flight any more, because their drop is foreign code and may panic.
        let mut landed = Vec::new();
        while self.queue.in_flight() > 0 {
            self.queue.wait(1, LANDING_PATIENCE);
            landed.append(&mut self.land());
        }
    }
}

/// The frame's memory, up to `len_bytes` of it.
fn buffer_of(space: &FrameSpace, frame: &mut FreeFrame, len_bytes: usize) -> IoSliceMut<'static> {
    let bytes: *mut [u8] = &mut space.bytes_mut(frame)[..len_bytes.min(PAGE_BYTES)];
    // SAFETY: the memory is that of a frame, which lives as long as the space. Exclusive: the frame's token
    // is in the hands of the caller, who makes no other reference before it is done with this one.
    IoSliceMut::new(unsafe { &mut *bytes })
}

//! Failures on command.

use std::ops::Range;
use std::time::Duration;

/// A call on a device. Reads and writes are counted one by one, not by batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// One of the reads of a [`read`](kreon_device::Device::read).
    Read,
    /// One of the writes of a [`write`](kreon_device::Device::write).
    Write,
    /// A flush.
    Flush,
    /// A growth.
    Grow,
    /// An allocation.
    Allocate,
    /// A discard.
    Discard,
}

/// What a fault does to its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It fails with `Io`. Of a write nothing arrives; after a flush it is in doubt for ever what it
    /// was to make durable.
    Io,
    /// It fails with `OutOfSpace` and does nothing.
    OutOfSpace,
    /// A write fails with `Io` after so many sectors arrived. Other calls: as `Io`.
    Partial {
        /// Sectors that arrived.
        sectors: u64,
    },
    /// It is reported as done and was not: a lost write, a flush that flushes nothing.
    Lost,
    /// A write goes elsewhere, within the device, and is reported as done. Other calls: as `Lost`.
    Misdirected {
        /// Where to, in bytes; a multiple of the sector.
        offset: u64,
    },
    /// A read gets what the device held that many flushes ago (1: right after the last one); what is
    /// older than the device remembers is what it held at first. Other calls: as `Lost`.
    Stale {
        /// How many; at most [`PAST_FLUSHES`](crate::PAST_FLUSHES).
        flushes: usize,
    },
    /// The call takes so long and is carried out then. Calls of other threads go on meanwhile.
    Slow {
        /// How long.
        time: Duration,
    },
    /// One bit of what is read or written is flipped. Other calls: none.
    FlippedBit {
        /// Which, counted from the first byte of the transfer, modulo its length.
        bit: u64,
    },
}

/// A fault that waits for its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of call that it befalls; `None`: any.
    pub call: Option<Call>,
    /// How many such calls pass unharmed first.
    pub after: u64,
    /// How many it befalls then; `u64::MAX`: all.
    pub times: u64,
    /// Only calls that touch these bytes of the device count; flushes touch none, growths neither.
    pub range: Option<Range<u64>>,
    /// What it does.
    pub effect: Effect,
}

impl Fault {
    /// Befalls call number `n` (the first is 1) of a kind from now on, once.
    pub fn nth(n: u64, call: Call, effect: Effect) -> Self {
        Self {
            call: Some(call),
            after: n.saturating_sub(1),
            times: 1,
            range: None,
            effect,
        }
    }

    /// Befalls call number `n` (the first is 1) of whatever kind from now on, once.
    pub fn nth_of_all(n: u64, effect: Effect) -> Self {
        Self {
            call: None,
            ..Self::nth(n, Call::Read, effect)
        }
    }

    /// The same fault for all further calls, too.
    #[must_use]
    pub fn for_ever(self) -> Self {
        Self {
            times: u64::MAX,
            ..self
        }
    }

    /// The same fault for calls only that touch `range`, in bytes.
    #[must_use]
    pub fn within(self, range: Range<u64>) -> Self {
        Self {
            range: Some(range),
            ..self
        }
    }

    /// Counts a call; whether the fault befalls it.
    fn meets(&mut self, call: Call, range: &Range<u64>) -> bool {
        if self.call.is_some_and(|only| only != call) || self.times == 0 {
            return false;
        }
        if let Some(only) = &self.range
            && (range.start >= only.end || only.start >= range.end)
        {
            return false;
        }
        if self.after > 0 {
            self.after -= 1;
            return false;
        }
        if self.times != u64::MAX {
            self.times -= 1;
        }
        true
    }
}

/// The faults that wait, and how often one struck.
#[derive(Default)]
pub(crate) struct Faults {
    waiting: Vec<Fault>,
    pub(crate) met: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.waiting.push(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Whether no fault waits for its call.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How long the next call of a kind takes. Does not count it.
    pub(crate) fn delay(&self, call: Call, range: &Range<u64>) -> Duration {
        let delays = self.waiting.iter().filter_map(|fault| match fault.effect {
            Effect::Slow { time } if fault.clone().meets(call, range) => Some(time),
            _ => None,
        });
        delays.sum()
    }

    /// Counts a call on `range`; what befalls it, by the first fault that does.
    pub(crate) fn meet(&mut self, call: Call, range: &Range<u64>) -> Option<Effect> {
        let mut effect = None;
        for fault in &mut self.waiting {
            if effect.is_none() && fault.meets(call, range) {
                effect = Some(fault.effect);
            }
        }
        self.met += u64::from(effect.is_some());
        effect
    }
}

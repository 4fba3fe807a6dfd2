//! The classes of faults that a sweep tries.

use kreon_sim::{Call, Effect, Fault};

/// What a sweep fails.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Its name.
    pub name: &'static str,
    /// What fails; `None`: any call.
    pub call: Option<Call>,
    /// How.
    pub effect: Effect,
    /// All calls from the n-th on, not this one alone.
    pub for_ever: bool,
}

/// What a store may say of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Nothing: no call fails.
    Unheard,
    /// `OutOfSpace`, and it goes on.
    Full,
    /// `OutOfSpace`, or `Io` and it takes no more writes.
    CutShort,
    /// `Io`, or it takes no more writes.
    Refused,
    /// `Corruption`, or it takes no more writes.
    Damaged,
}

impl Class {
    /// One call fails.
    pub const fn once(name: &'static str, call: Call, effect: Effect) -> Self {
        Self {
            name,
            call: Some(call),
            effect,
            for_ever: false,
        }
    }

    /// All calls fail from some on.
    pub const fn from_then_on(name: &'static str, call: Call, effect: Effect) -> Self {
        Self {
            for_ever: true,
            ..Self::once(name, call, effect)
        }
    }

    /// The fault that befalls call number `n`.
    pub fn fault(&self, n: u64) -> Fault {
        let effect = match self.effect {
            Effect::FlippedBit { bit } => Effect::FlippedBit {
                bit: bit * n % FLIPPED_BITS_MAX,
            },
            effect => effect,
        };
        let mut fault = Fault::nth_of_all(n, effect);
        fault.call = self.call;
        match self.for_ever {
            true => fault.for_ever(),
            false => fault,
        }
    }

    /// What the store may say.
    pub fn manner(&self) -> Manner {
        match (self.call, self.effect) {
            (Some(Call::Discard), _) => Manner::Unheard,
            (Some(Call::Allocate | Call::Grow), Effect::OutOfSpace) => Manner::Full,
            (_, Effect::OutOfSpace) => Manner::CutShort,
            (_, Effect::Io | Effect::Partial { .. }) => Manner::Refused,
            (_, Effect::Slow { .. }) => Manner::Unheard,
            (
                _,
                Effect::Lost
                | Effect::Misdirected { .. }
                | Effect::Stale { .. }
                | Effect::FlippedBit { .. },
            ) => Manner::Damaged,
        }
    }

    /// The device says that all is well and it is not, and what it holds is wrong for good.
    pub fn is_silent(&self) -> bool {
        self.call == Some(Call::Write) && self.manner() == Manner::Damaged
    }

    /// Nothing works any more.
    pub fn is_dead(&self) -> bool {
        self.call.is_none()
    }
}

/// Pages that a misdirected write goes to: a superblock slot, a bitmap block, the first tree page, a
/// page of the log.
const SLOT_AT: u64 = 8 * 4096;
const BITMAP_AT: u64 = 32 * 4096;
const TREE_AT: u64 = 64 * 4096;
const LOG_AT: u64 = (2 << 20) + 2 * 4096;

/// All classes.
pub const CLASSES: [Class; 31] = [
    Class::once("read EIO", Call::Read, Effect::Io),
    Class::from_then_on("read EIO from then on", Call::Read, Effect::Io),
    Class::once("read, first bit flipped", Call::Read, FIRST_BIT),
    Class::once("read, a bit flipped", Call::Read, SOME_BIT),
    Class::once("read, another bit flipped", Call::Read, OTHER_BIT),
    Class::once("write EIO", Call::Write, Effect::Io),
    Class::once(
        "write cut to one sector",
        Call::Write,
        Effect::Partial { sectors: 1 },
    ),
    Class::once(
        "write cut to five sectors",
        Call::Write,
        Effect::Partial { sectors: 5 },
    ),
    Class::once("write ENOSPC", Call::Write, Effect::OutOfSpace),
    Class::from_then_on("write EIO from then on", Call::Write, Effect::Io),
    Class::from_then_on("write ENOSPC from then on", Call::Write, Effect::OutOfSpace),
    Class::once("write lost", Call::Write, Effect::Lost),
    Class::once("write, first bit flipped", Call::Write, FIRST_BIT),
    Class::once("write, a bit flipped", Call::Write, SOME_BIT),
    Class::once(
        "write misdirected to a slot",
        Call::Write,
        Effect::Misdirected { offset: SLOT_AT },
    ),
    Class::once(
        "write misdirected to a bitmap",
        Call::Write,
        Effect::Misdirected { offset: BITMAP_AT },
    ),
    Class::once(
        "write misdirected to a tree",
        Call::Write,
        Effect::Misdirected { offset: TREE_AT },
    ),
    Class::once(
        "write misdirected to the log",
        Call::Write,
        Effect::Misdirected { offset: LOG_AT },
    ),
    Class::once("flush EIO", Call::Flush, Effect::Io),
    Class::from_then_on("flush EIO from then on", Call::Flush, Effect::Io),
    Class::once("allocate EIO", Call::Allocate, Effect::Io),
    Class::once("allocate ENOSPC", Call::Allocate, Effect::OutOfSpace),
    Class::from_then_on(
        "allocate ENOSPC from then on",
        Call::Allocate,
        Effect::OutOfSpace,
    ),
    Class::from_then_on("allocate EIO from then on", Call::Allocate, Effect::Io),
    Class::once("grow EIO", Call::Grow, Effect::Io),
    Class::once("grow ENOSPC", Call::Grow, Effect::OutOfSpace),
    Class::from_then_on("grow ENOSPC from then on", Call::Grow, Effect::OutOfSpace),
    Class::once("discard EIO", Call::Discard, Effect::Io),
    Class::from_then_on("discard EIO from then on", Call::Discard, Effect::Io),
    Class::once("discard lost", Call::Discard, Effect::Lost),
    Class {
        name: "device dead from then on",
        call: None,
        effect: Effect::Io,
        for_ever: true,
    },
];

const FIRST_BIT: Effect = Effect::FlippedBit { bit: 0 };

/// Another bit for each call.
const SOME_BIT: Effect = Effect::FlippedBit { bit: 1_234_577 };
const OTHER_BIT: Effect = Effect::FlippedBit { bit: 7_654_321 };

/// Flipped bits stand in the first 24 KiB of a transfer: most that are longer end with nothing.
const FLIPPED_BITS_MAX: u64 = 24 << 13;

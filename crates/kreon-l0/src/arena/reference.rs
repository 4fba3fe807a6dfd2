//! References between objects of an arena: 32 bits, in units of 8 bytes.

use kreon_base::sync::{AtomicU32, AtomicU64, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;

/// A reference to an object of type `T` in the arena that made it.
pub(crate) struct Ref<T> {
    unit: NonZeroU32,
    object: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// For the arena only: it must have written a `T` at `unit`.
    pub(super) fn new(unit: NonZeroU32) -> Self {
        Self {
            unit,
            object: PhantomData,
        }
    }

    /// First unit of the object.
    pub(super) fn unit(self) -> u32 {
        self.unit.get()
    }

    fn to_bits(reference: Option<Self>) -> u32 {
        reference.map_or(0, |r| r.unit.get())
    }

    fn from_bits(bits: u32) -> Option<Self> {
        NonZeroU32::new(bits).map(Self::new)
    }
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<T> {}

impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.unit == other.unit
    }
}

impl<T> Eq for Ref<T> {}

impl<T> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ref({})", self.unit)
    }
}

/// A shared cell for an optional reference.
pub(crate) struct AtomicRef<T> {
    bits: AtomicU32,
    object: PhantomData<fn() -> T>,
}

impl<T> AtomicRef<T> {
    /// A cell with `reference`.
    pub(crate) fn new(reference: Option<Ref<T>>) -> Self {
        Self {
            bits: AtomicU32::new(Ref::to_bits(reference)),
            object: PhantomData,
        }
    }

    /// Its content. Acquire: the object is visible as it was when the reference was stored, or later.
    pub(crate) fn load(&self) -> Option<Ref<T>> {
        Ref::from_bits(self.bits.load(Ordering::Acquire))
    }

    /// Stores `reference`. Release: publishes the object.
    pub(crate) fn store(&self, reference: Option<Ref<T>>) {
        self.bits.store(Ref::to_bits(reference), Ordering::Release);
    }
}

/// A reference and 32 further bits in one word.
pub(crate) struct Tagged<T> {
    /// The bits.
    pub tag: u32,
    /// The reference.
    pub to: Option<Ref<T>>,
}

impl<T> Clone for Tagged<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tagged<T> {}

impl<T> PartialEq for Tagged<T> {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag && self.to == other.to
    }
}

/// A shared cell for a [`Tagged`] reference; both halves change together.
pub(crate) struct AtomicTagged<T> {
    /// Tag in the high half, reference in the low one.
    bits: AtomicU64,
    object: PhantomData<fn() -> T>,
}

impl<T> AtomicTagged<T> {
    /// A cell with `tagged`.
    pub(crate) fn new(tagged: Tagged<T>) -> Self {
        Self {
            bits: AtomicU64::new(Self::pack(tagged)),
            object: PhantomData,
        }
    }

    /// Its content. Acquire, as in [`AtomicRef::load`].
    pub(crate) fn load(&self) -> Tagged<T> {
        let bits = self.bits.load(Ordering::Acquire);
        Tagged {
            tag: (bits >> 32) as u32,
            to: Ref::from_bits(bits as u32),
        }
    }

    /// Only the tag. Relaxed, as no reference is followed.
    pub(crate) fn tag(&self) -> u32 {
        (self.bits.load(Ordering::Relaxed) >> 32) as u32
    }

    /// Whether the tag is below `bound`. Relaxed, as no reference is followed.
    #[inline]
    pub(crate) fn is_below(&self, bound: u32) -> bool {
        self.bits.load(Ordering::Relaxed) < u64::from(bound) << 32
    }

    /// Stores `tagged`. Release, as in [`AtomicRef::store`].
    pub(crate) fn store(&self, tagged: Tagged<T>) {
        self.bits.store(Self::pack(tagged), Ordering::Release);
    }

    fn pack(tagged: Tagged<T>) -> u64 {
        u64::from(tagged.tag) << 32 | u64::from(Ref::to_bits(tagged.to))
    }
}

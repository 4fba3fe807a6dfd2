//! What a region has of its own.

use std::num::NonZeroU64;
use std::time::Duration;

use kreon_engine::{Codec, RegionOptions as Inner};

use crate::{Error, Region, Result};

/// Options of a region, where others go by the options of the store: for [`Store::region_with`](crate::Store::region_with)
/// and [`Region::set_options`](crate::Region::set_options). They are part of the region: durable, in backups and repairs,
/// and the same in every opening.
///
/// The fields are those of the functions that set them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the functions of the same names tell")]
pub struct RegionOptions {
    pub compression: Codec,
    pub ttl: Option<Duration>,
    pub inline_value_bytes_max: Option<usize>,
    pub growth_factor: Option<u32>,
}

impl RegionOptions {
    /// Nothing of its own: no compression, no TTL, limits as the store says.
    pub fn new() -> Self {
        Self::default()
    }

    /// How values are packed that are written from now on. Default: not at all.
    ///
    /// A value is kept as it is where packing saves less than an eighth of it, and below 32 bytes. Each value is packed by
    /// itself, in the thread that writes it, and unpacked whenever it is read. A packed value that is short enough goes
    /// into leaves. A write takes about as much memory as its value, and a [reader](crate::ValueReader) of a packed value holds all
    /// of it. What packing costs and saves: `docs/decisions/045-compression.md`.
    #[must_use]
    pub fn compression(mut self, compression: Codec) -> Self {
        self.compression = compression;
        self
    }

    /// How long values live whose write says nothing else: by [`put`](crate::Region::put) in all its forms, batches,
    /// transactions, updates and bulk loads. To the millisecond, rounded up. [`put_with_ttl`](crate::Region::put_with_ttl)
    /// and [`persist`](crate::Region::persist) win over it. Default: `None`, until the next write of the key.
    #[must_use]
    pub fn ttl(mut self, ttl: impl Into<Option<Duration>>) -> Self {
        self.ttl = ttl.into();
        self
    }

    /// Longest value, as it is stored, that goes into leaves: 0 to 256 bytes. Default: `None`, as
    /// [the store](crate::Options::inline_value_bytes_max) says.
    #[must_use]
    pub fn inline_value_bytes_max(mut self, bytes: impl Into<Option<usize>>) -> Self {
        self.inline_value_bytes_max = bytes.into();
        self
    }

    /// Size ratio of neighbouring levels, 2 to 100. Default: `None`, as [the store](crate::Options::growth_factor) says.
    #[must_use]
    pub fn growth_factor(mut self, factor: impl Into<Option<u32>>) -> Self {
        self.growth_factor = factor.into();
        self
    }

    /// As the engine has them.
    pub(crate) fn inner(&self) -> Result<Inner> {
        let too_large = |what: &str| Error::invalid(format!("{what} of a region is out of range"));
        let ttl_ms = match self.ttl {
            None => None,
            Some(ttl) => {
                let ms = u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
                Some(NonZeroU64::new(ms).ok_or_else(|| too_large("a TTL of zero"))?)
            }
        };
        let limit = self.inline_value_bytes_max.map(u16::try_from).transpose();
        let growth = self.growth_factor.map(u8::try_from).transpose();
        Ok(Inner {
            compression: self.compression,
            ttl_ms,
            inline_value_bytes_max: limit.map_err(|_| too_large("inline_value_bytes_max"))?,
            growth_factor: growth.map_err(|_| too_large("growth_factor"))?,
        })
    }

    pub(crate) fn of(inner: &Inner) -> Self {
        Self {
            compression: inner.compression,
            ttl: inner.ttl_ms.map(|ms| Duration::from_millis(ms.get())),
            inline_value_bytes_max: inner.inline_value_bytes_max.map(usize::from),
            growth_factor: inner.growth_factor.map(u32::from),
        }
    }
}

impl Region {
    /// The options of the region.
    pub fn options(&self) -> RegionOptions {
        RegionOptions::of(&self.state.own.all())
    }

    /// Gives the region other options, durably. They hold for writes from now on, and for merges from the next spill on: what
    /// was written before keeps its form, and is read as it is. Costs a checkpoint, and waits for a spill or a verification
    /// that is under way.
    ///
    /// # Errors
    /// `InvalidArgument` for options out of their range; `Closed`, `OutOfSpace`, `Poisoned`: the region has the old ones.
    /// `Io`: it has the old ones until it is opened again.
    pub fn set_options(&self, options: &RegionOptions) -> Result<()> {
        let options = options.inner()?;
        self.engine.set_region_options(&self.state, &options)
    }
}

//! The volume as the parts of a store see it.

use std::sync::Arc;

use kreon_base::{Incarnation, LogId};
use kreon_device::Device;
use kreon_format::StoreId;
use kreon_mapping::Mapping;
use kreon_volume::Allocator;
use parking_lot::Mutex;

/// The only log.
pub(super) const LOG: LogId = LogId(0);

/// Device, frames, space and identity.
#[derive(Clone)]
pub(super) struct Home {
    pub device: Arc<dyn Device>,
    pub mapping: Arc<Mapping>,
    /// No other lock is taken under this one.
    pub allocator: Arc<Mutex<Allocator>>,
    pub store: StoreId,
    /// This opening of the store.
    pub incarnation: Incarnation,
}

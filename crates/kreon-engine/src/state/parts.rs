//! All parts of an open store.

use std::sync::Arc;

use crate::sync::Mutex;
use kreon_device::Device;
use kreon_format::StoreId;
use kreon_mapping::Mapping;

use super::{Ledger, MadeRegions, Poison};
use crate::level::Views;
use crate::log::{Log, MovedStream};
use crate::volume::Allocator;

/// The parts, each with its own lock. Order of locks: `moved`, `ledger`, `made`, then the log's, then
/// `allocator`.
pub struct Parts {
    /// The device under the volume.
    pub device: Arc<dyn Device>,
    /// The store's identity, in every checksum.
    pub store: StoreId,
    /// Pages of trees and of the log, in frames.
    pub mapping: Arc<Mapping>,
    /// Segments and pages in use.
    pub allocator: Arc<Mutex<Allocator>>,
    /// The value log.
    pub log: Arc<Log>,
    /// Where records are moved to.
    pub moved: Mutex<MovedStream>,
    /// What readers see.
    pub views: Views,
    /// What is durable.
    pub ledger: Mutex<Ledger>,
    /// Regions that the log has and no checkpoint yet.
    pub made: MadeRegions,
    /// With more regions than this a catalogue has them in pages of their own.
    pub regions_in_stream_max: usize,
    /// Set when writing must stop.
    pub poison: Poison,
}

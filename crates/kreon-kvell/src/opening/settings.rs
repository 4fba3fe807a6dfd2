//! What a store is created with, and opened with.

use kreon_format::StoreId;

/// What a store is created with, and opened with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Of a new store.
    pub partitions: u16,
    /// Of a new store: the largest write in bytes that a power cut does not tear.
    pub atomic_bytes: usize,
    /// Bytes of each key that stand in the index.
    pub index_key_bytes: usize,
    pub memory_bytes: usize,
    pub is_lossless: bool,
    /// Of a new store; random if `None`.
    pub store: Option<StoreId>,
    /// Create a store if there is none.
    pub creates: bool,
    /// With that: create the store also where the first pages have something that is no store.
    pub formats: bool,
    /// Threads that read a store at most: as many as there are processors.
    pub threads: usize,
}

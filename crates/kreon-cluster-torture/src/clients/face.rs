//! A cluster as a client sees it.

use std::time::Duration;

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// It was not carried out, and never will be.
    Refused(String),
    /// It may have been carried out, and may be yet. Of a read: it saw nothing.
    Unknown(String),
    /// The snapshot is gone.
    Closed,
    /// What no client should ever be told.
    Wrong(String),
}

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A key gets a value.
    Put(Vec<u8>, Vec<u8>),
    /// A key goes.
    Delete(Vec<u8>),
    /// All keys from the first up to the second, which is not among them.
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// Keys with their values, in the order of a scan.
pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// A cluster with one table, as one client has it. All keys of one call lie in one range.
pub trait Store: Send {
    /// The values of keys, each at some moment of the call.
    ///
    /// # Errors
    /// See [`Said`].
    fn get_many(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Said>;

    /// Changes all at once; with `is_sync` it is durable on all members when this returns.
    ///
    /// # Errors
    /// See [`Said`].
    fn write(&mut self, changes: &[Change], is_sync: bool) -> Result<(), Said>;

    /// What lies from `start` up to `end`, at one moment of the call.
    ///
    /// # Errors
    /// See [`Said`].
    fn scan(&mut self, start: &[u8], end: &[u8], is_reverse: bool) -> Result<Pairs, Said>;

    /// What the range of `key` holds at one moment of the call.
    ///
    /// # Errors
    /// See [`Said`].
    fn snapshot(&mut self, key: &[u8]) -> Result<Box<dyn Moment + '_>, Said>;
}

/// A range at one moment.
pub trait Moment {
    /// The value of a key at that moment.
    ///
    /// # Errors
    /// See [`Said`].
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Said>;

    /// What lay from `start` up to `end`.
    ///
    /// # Errors
    /// See [`Said`].
    fn scan(&mut self, start: &[u8], end: &[u8]) -> Result<Pairs, Said>;
}

/// How clients come to a cluster: their calls end within a limit.
pub type Enter<'a> = dyn Fn(Duration) -> Result<Box<dyn Store>, String> + Sync + 'a;

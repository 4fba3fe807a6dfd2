//! Transactions: reads at a snapshot with the transaction's own writes on top, and a commit that fails if another writer
//! came between.
//!
//! - [`writes`]: what a transaction is to write, with savepoints
//! - [`reads`]: the keys and ranges whose changes are conflicts
//! - [`check`]: the condition of a commit
//! - [`handle`]: the transaction
//! - [`scan`]: scans with own writes
//! - [`update`]: read-modify-write of one key

mod check;
mod handle;
mod reads;
mod scan;
mod update;
mod writes;

pub use handle::{Isolation, Savepoint, TRANSACTION_BYTES_MAX, Transaction};
pub use scan::TransactionScan;
pub use update::{Current, Update, update};

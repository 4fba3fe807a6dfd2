//! What must hold for all bytes: of every decoder, of a whole store, of the operations, and of what
//! reads input of users.
//!
//! Each [`Target`] is a function of bytes that panics when its property does not hold. The fuzz targets
//! call it with the bytes that coverage suggests; the tests of this crate call the same one with a
//! stored corpus and with random bytes.
//!
//! Random bytes never get past a checksum. So the inputs tell how bytes come about (`forge`): as they
//! are, with a right checksum put in, as a valid structure with damage that is sealed anew, and as a
//! valid structure with few flipped bits, which must be refused.
//!
//! - `pages`: superblock, bitmap block, log segment header
//! - `catalogue`: the catalogue, and its chain of pages
//! - `log`: fragments and pads
//! - `leaf`, `index`: nodes of a tree, beside a naive reading of them
//! - `store_file`: a whole volume with damage
//! - `operations`: calls beside a model, with power cuts
//! - `input`: what the command reads
//! - `packets`: what servers send each other, made by `messages`
//! - `client_messages`: what clients ask and servers answer
//! - `cluster_nodes`: what servers read from their coordinator
//! - `requests`: what clients of Redis send
//! - `commands`: commands of Redis, one by one and in transactions
//! - `kvell`: all that the engine KVell reads from its volume
//! - `tucana`: superblocks and nodes of the engine Tucana
//! - [`canary()`]: a property that does not hold
#![forbid(unsafe_code)]

mod canary;
mod case;
mod catalogue;
mod client_messages;
mod cluster_nodes;
mod commands;
mod forge;
mod index;
mod input;
mod keys;
mod kvell;
mod leaf;
mod log;
mod messages;
mod operations;
mod packets;
mod pages;
mod random;
mod requests;
mod seal;
mod store_file;
mod targets;
mod tucana;
mod volume;

pub use canary::canary;
pub use random::{Randomness, random_input};
pub use targets::{TARGETS, Target, named, run};

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
//! - [`canary()`]: a property that does not hold
#![forbid(unsafe_code)]

mod canary;
mod catalogue;
mod forge;
mod index;
mod input;
mod keys;
mod leaf;
mod log;
mod operations;
mod pages;
mod random;
mod seal;
mod store_file;
mod volume;

pub use canary::canary;
pub use random::{Randomness, random_input};

/// A property of all bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, also that of the fuzz target and of the folder of its corpus.
    pub name: &'static str,
    /// Panics when the property does not hold for these bytes.
    pub run: fn(&[u8]),
    /// Of random inputs in an ordinary test run, how many.
    pub cases: u32,
    /// Longest input worth trying.
    pub input_bytes_max: usize,
}

const fn target(name: &'static str, run: fn(&[u8]), cases: u32, input_bytes_max: usize) -> Target {
    Target {
        name,
        run,
        cases,
        input_bytes_max,
    }
}

/// All properties that must hold. [`canary`] is not among them.
pub const TARGETS: [Target; 11] = [
    target("superblock", pages::superblock, 4000, 512),
    target("bitmap_block", pages::bitmap_block, 2000, 512),
    target("segment_header", pages::segment_header, 4000, 512),
    target("catalogue", catalogue::stream, 8000, 2048),
    target("catalogue_pages", catalogue::chain, 1000, 2048),
    target("log_fragments", log::fragments, 4000, 2048),
    target("leaf", leaf::leaf, 2000, 2048),
    target("index_node", index::index_node, 2000, 2048),
    target("store_file", store_file::store_file, 60, 512),
    target("operations", operations::operations, 60, 512),
    target("input", input::input, 8000, 1024),
];

/// The target called `name`.
pub fn named(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}

/// Runs the target called `name`.
///
/// # Panics
/// If the property does not hold for `bytes`, or there is no such target.
pub fn run(name: &str, bytes: &[u8]) {
    match named(name) {
        Some(target) => (target.run)(bytes),
        None => panic!("there is no target {name}"),
    }
}

/// Runs `property` on what `bytes` say; bytes that say too little are no case.
fn with(
    bytes: &[u8],
    property: impl FnOnce(&mut arbitrary::Unstructured<'_>) -> arbitrary::Result<()>,
) {
    // Too few bytes for a whole case: nothing to check, and nothing to complain about.
    let _ = property(&mut arbitrary::Unstructured::new(bytes));
}

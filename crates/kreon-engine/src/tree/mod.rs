//! The trees of the levels: copy-on-write B-trees of 4 KiB pages, and the partial merge behind spills and
//! merges of levels (`Kreon 3.2.1`).
//!
//! Entries are versions of keys, ordered by key, the versions of one key newest first. Trees are
//! immutable: readers need no latch, and a merge leaves the old tree whole.
//!
//! - [`node_source`]: the traits for reading nodes and for writing fresh ones
//! - [`entry`]: versions, the input of a merge and its report
//! - [`search`], [`cursor`] (beneath it: `path`, `leaf_copy`), [`prefetch`], [`mod@pages`], [`mod@verify`]: readers
//! - [`mod@merge`]: the only writer, also for bulk builds (a merge into an empty tree); [`merge_parts`] for several
//!   workers, `merge_ranges` for deleted ranges. Beneath them: `window` (input), `version_rules` and
//!   `version_filter` (which versions stay), `output`, `leaf_packer`, `leaf_balance` and `index_packer`
//!   (fresh nodes)

mod child;
mod cursor;
mod entry;
mod fresh_pages;
mod index_packer;
mod leaf_balance;
mod leaf_copy;
mod leaf_keys;
mod leaf_packer;
mod limits;
mod merge;
mod merge_balance;
mod merge_counts;
mod merge_parts;
mod merge_ranges;
mod merge_rules;
mod node_source;
mod output;
mod pages;
mod path;
mod prefetch;
mod search;
mod verify;
mod version_filter;
mod version_rules;
mod window;

#[cfg(test)]
mod tests;

pub use cursor::Cursor;
pub use entry::{Changes, Entry, EntryStream, Reference, Version};
pub use merge::merge;
pub use merge_parts::{Cut, MergedPart, join, merge_part};
pub use merge_rules::MergeRules;
pub use node_source::{Filtering, NodeSink, NodeSource};
pub use pages::pages;
pub use prefetch::prefetch_paths;
pub use search::get;
pub use verify::{Visitor, verify};

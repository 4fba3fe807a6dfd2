//! The list of all properties: names, functions, and the number and length of random inputs.

use crate::{
    catalogue, client_messages, cluster_nodes, commands, index, input, kvell, leaf, log,
    operations, packets, pages, requests, store_file, tucana,
};

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

/// All properties that must hold. [`canary`](crate::canary()) is not among them.
pub const TARGETS: [Target; 24] = [
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
    target("packet", packets::packet, 8000, 1024),
    target("cluster_node", cluster_nodes::cluster_node, 8000, 1024),
    target(
        "client_message",
        client_messages::client_message,
        8000,
        1024,
    ),
    target("kvell_superblock", kvell::superblock, 2000, 512),
    target("kvell_extent", kvell::extent_header, 4000, 600),
    target("kvell_item", kvell::item, 4000, 1024),
    target("kvell_large", kvell::large_value, 8000, 1024),
    target("kvell_image", kvell::image, 8000, 1024),
    target("tucana_superblock", tucana::superblock, 2000, 512),
    target("tucana_leaf", tucana::leaf, 2000, 4096),
    target("tucana_index", tucana::index_node, 2000, 4096),
    target("commands", commands::commands, 40, 1024),
    target("requests", requests::requests, 8000, 1024),
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

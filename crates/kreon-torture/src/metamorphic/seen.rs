//! The store as lanes see it, and whether its answers are right.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use kreon_base::Error;
use kreon_engine::{Engine, KeyBounds, RegionState};

use super::settings::Settings;
use crate::content::Digest;

/// The store as a lane sees it.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// The store.
    pub engine: &'a Engine,
    /// Its regions.
    pub regions: &'a [Arc<RegionState>],
    /// How it is used.
    pub settings: &'a Settings,
}

/// In words.
pub fn said(error: Error) -> String {
    error.to_string()
}

/// Compares an answer with what it must be.
///
/// # Errors
/// They differ.
pub fn agree<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("said {found:?}, must be {expected:?}")),
    }
}

/// The pairs within bounds.
pub fn within(pairs: &BTreeMap<Vec<u8>, Digest>, bounds: &KeyBounds) -> Vec<(Vec<u8>, Digest)> {
    let is_above = |key: &Vec<u8>| match &bounds.0 {
        Bound::Unbounded => true,
        Bound::Included(low) => key >= low,
        Bound::Excluded(low) => key > low,
    };
    let is_below = |key: &Vec<u8>| match &bounds.1 {
        Bound::Unbounded => true,
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
    };
    let pairs = pairs.iter().map(|(key, value)| (key.clone(), *value));
    pairs
        .filter(|(key, _)| is_above(key) && is_below(key))
        .collect()
}

//! What regions have of their own, by their names: so that packed values, values in other places and levels of other
//! sizes are in every run, and every reading of a content finds an option that was lost.

use kreon_base::{Codec, Error, Result};
use kreon_engine::{RegionOptions, RegionState};

/// One region of a run has values packed by LZ4 and mostly in the log, another one by Zstandard in many levels.
pub fn options_of(name: &str) -> RegionOptions {
    match name {
        "beta" | "region1" | "fixed1" => RegionOptions {
            compression: Codec::Lz4,
            inline_value_bytes_max: Some(16),
            ..RegionOptions::DEFAULT
        },
        "gamma" | "fixed0" => RegionOptions {
            compression: Codec::Zstd,
            growth_factor: Some(2),
            ..RegionOptions::DEFAULT
        },
        // Made, and lost with the power, more often than any: an option that changes no course.
        "base" | "second" => RegionOptions {
            growth_factor: Some(7),
            ..RegionOptions::DEFAULT
        },
        _ => RegionOptions::DEFAULT,
    }
}

/// Whether a region has what it was made with.
///
/// # Errors
/// `Corruption` if not.
pub fn check(region: &RegionState) -> Result<()> {
    let (found, made) = (region.own.all(), options_of(&region.name));
    match found == made {
        true => Ok(()),
        false => Err(Error::corruption(format!(
            "region {} has {found:?}, it was made with {made:?}",
            region.name
        ))),
    }
}

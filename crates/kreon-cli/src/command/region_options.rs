//! The options of a region: as arguments, and as they are printed.

use std::time::Duration;

use clap::{Args, ValueEnum};
use kreon::{Compression, RegionOptions};

use crate::failure::Result;
use crate::lifetime::{lifetime_text, parse_lifetime};
use crate::sink::Sink;

/// Changes of the options of a region.
#[derive(Debug, Args)]
pub struct OptionChanges {
    /// How values are packed
    #[arg(long, value_name = "CODEC")]
    compression: Option<Codec>,
    /// Default TTL of values, such as 10s or 1.5h; `none`: until the next write
    #[arg(long, value_name = "TIME", value_parser = or_none("none", parse_lifetime))]
    ttl: Option<OrNone<Duration>>,
    /// Inline limit: the longest value in leaves, 0 to 256; `store`: as the store says
    #[arg(long, value_name = "BYTES", value_parser = or_none("store", parse_number))]
    inline_value_bytes_max: Option<OrNone<u32>>,
    /// Size ratio of neighbouring levels, 2 to 100; `store`: as the store says
    #[arg(long, value_name = "NUMBER", value_parser = or_none("store", parse_number))]
    growth_factor: Option<OrNone<u32>>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Codec {
    /// Not at all
    None,
    /// The fastest
    Lz4,
    /// Smaller
    Zstd,
}

/// A value, or a word that stands for none.
#[derive(Clone, Copy, Debug)]
struct OrNone<T>(Option<T>);

fn or_none<T: Clone + Send + Sync + 'static>(
    none: &'static str,
    parse: fn(&str) -> Result<T, String>,
) -> impl Fn(&str) -> Result<OrNone<T>, String> + Clone + Send + Sync + 'static {
    move |text| match text == none {
        true => Ok(OrNone(None)),
        false => parse(text).map(|value| OrNone(Some(value))),
    }
}

fn parse_number(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|error| format!("`{text}` is not a number: {error}"))
}

impl OptionChanges {
    /// Whether nothing is changed.
    pub fn are_none(&self) -> bool {
        self.compression.is_none()
            && self.ttl.is_none()
            && self.inline_value_bytes_max.is_none()
            && self.growth_factor.is_none()
    }

    /// `options` with the changes.
    pub fn applied(&self, mut options: RegionOptions) -> RegionOptions {
        if let Some(codec) = self.compression {
            options.compression = match codec {
                Codec::None => Compression::None,
                Codec::Lz4 => Compression::Lz4,
                Codec::Zstd => Compression::Zstd,
            };
        }
        if let Some(OrNone(ttl)) = self.ttl {
            options.ttl = ttl;
        }
        if let Some(OrNone(bytes)) = self.inline_value_bytes_max {
            options.inline_value_bytes_max = bytes.map(|bytes| bytes as usize);
        }
        if let Some(OrNone(factor)) = self.growth_factor {
            options.growth_factor = factor;
        }
        options
    }
}

/// Prints options, one a line, as they are given.
pub fn print(options: &RegionOptions, out: &mut Sink) -> Result<()> {
    let of_store = |number: Option<u64>| number.map_or("store".into(), |number| number.to_string());
    let limit = options.inline_value_bytes_max.map(|bytes| bytes as u64);
    let ttl = options.ttl.map_or("none".into(), lifetime_text);
    for (name, value) in [
        ("compression", options.compression.name().into()),
        ("ttl", ttl),
        ("inline-value-bytes-max", of_store(limit)),
        (
            "growth-factor",
            of_store(options.growth_factor.map(u64::from)),
        ),
    ] {
        out.line(&format!("{name} {value}"))?;
    }
    Ok(())
}

//! Options that several commands share, in groups. A command lists the groups that mean something to it; before
//! the command all of them are taken, as defaults for the command.

use std::env;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use kreon::Durability;

use crate::encoding::Encoding;
use crate::failure::{Failure, Result};
use crate::size::parse_size;

const STORE_VARIABLE: &str = "KREON_STORE";

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Store options")]
pub struct StoreOptions {
    /// The store: a file or a block device [env: KREON_STORE]
    #[arg(short, long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Memory budget of the store: 256MiB, 1g, 65536 [default: 256MiB, or 32MiB for commands that
    /// touch little]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<usize>,
    /// Tell more on standard error; twice for even more
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Store options")]
pub struct GrowthOptions {
    /// Never let the volume grow beyond this
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub volume_max: Option<usize>,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Region and durability")]
pub struct SyncOptions {
    /// Make each write durable before going on
    #[arg(long)]
    sync: bool,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Region and durability")]
pub struct RegionOptions {
    /// The region (key space) to work in [default: default]
    #[arg(short, long, value_name = "NAME")]
    pub region: Option<String>,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Keys and values")]
pub struct KeyOptions {
    /// How keys and values are written, on the command line, in files and in output [default: text]
    #[arg(long, value_enum, value_name = "ENCODING")]
    encoding: Option<Encoding>,
    /// The same as --encoding escapes: \xNN stands for the byte NN, in input and output
    #[arg(short = 'e', long, conflicts_with = "encoding")]
    escapes: bool,
    /// The encoding of keys only
    #[arg(long, value_enum, value_name = "ENCODING", hide_possible_values = true)]
    key_encoding: Option<Encoding>,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Keys and values")]
pub struct ValueOptions {
    /// The encoding of values only
    #[arg(long, value_enum, value_name = "ENCODING", hide_possible_values = true)]
    value_encoding: Option<Encoding>,
}

/// All groups: what may stand before the command, and what a command was given.
#[derive(Clone, Debug, Default, Args)]
pub struct Shared {
    #[command(flatten)]
    pub store: StoreOptions,
    #[command(flatten)]
    pub growth: GrowthOptions,
    #[command(flatten)]
    pub region: RegionOptions,
    #[command(flatten)]
    pub sync: SyncOptions,
    #[command(flatten)]
    pub keys: KeyOptions,
    #[command(flatten)]
    pub values: ValueOptions,
}

impl Shared {
    /// These options, and for what they do not say `before`.
    #[must_use]
    pub fn or(self, before: &Self) -> Self {
        let (keys, keys_before) = (self.keys, &before.keys);
        let says_encoding = keys.encoding.is_some() || keys.escapes;
        Self {
            store: StoreOptions {
                store: self.store.store.or_else(|| before.store.store.clone()),
                memory: self.store.memory.or(before.store.memory),
                verbose: self.store.verbose + before.store.verbose,
            },
            growth: GrowthOptions {
                volume_max: self.growth.volume_max.or(before.growth.volume_max),
            },
            region: RegionOptions {
                region: self.region.region.or_else(|| before.region.region.clone()),
            },
            sync: SyncOptions {
                sync: self.sync.sync || before.sync.sync,
            },
            keys: KeyOptions {
                encoding: keys
                    .encoding
                    .or(keys_before.encoding.filter(|_| !says_encoding)),
                escapes: keys.escapes || (keys_before.escapes && !says_encoding),
                key_encoding: keys.key_encoding.or(keys_before.key_encoding),
            },
            values: ValueOptions {
                value_encoding: self.values.value_encoding.or(before.values.value_encoding),
            },
        }
    }

    pub fn store_path(&self) -> Result<PathBuf> {
        let variable = || env::var_os(STORE_VARIABLE).filter(|path| !path.is_empty());
        self.store
            .store
            .clone()
            .or_else(|| variable().map(PathBuf::from))
            .ok_or_else(|| Failure::usage("no store named: give --store PATH or set KREON_STORE"))
    }

    pub fn durability(&self) -> Durability {
        match self.sync.sync {
            true => Durability::Sync,
            false => Durability::Buffered,
        }
    }

    /// None: nothing was said of it.
    fn encoding(&self) -> Option<Encoding> {
        match self.keys.escapes {
            true => Some(Encoding::Escapes),
            false => self.keys.encoding,
        }
    }

    pub fn key_encoding(&self) -> Option<Encoding> {
        self.keys.key_encoding.or(self.encoding())
    }

    pub fn value_encoding(&self) -> Option<Encoding> {
        self.values.value_encoding.or(self.encoding())
    }
}

/// The groups that a command takes. Their types have no documentation of their own: it would become the
/// command's.
pub trait Groups {
    /// What was said after the command.
    fn given(&self) -> Shared;
}

macro_rules! groups {
    ($name:ident: $($group:ident: $type:ident),*) => {
        #[derive(Clone, Debug, Args)]
        #[allow(missing_docs, reason = "see `Groups`")]
        pub struct $name {
            $(#[command(flatten)] $group: $type),*
        }

        impl Groups for $name {
            #[allow(clippy::needless_update, reason = "some lists have all groups")]
            fn given(&self) -> Shared {
                Shared { $($group: self.$group.clone(),)* ..Shared::default() }
            }
        }
    };
}

groups!(OnStore: store: StoreOptions);
groups!(OnRegions: store: StoreOptions, growth: GrowthOptions);
groups!(OnRegion: store: StoreOptions, growth: GrowthOptions, region: RegionOptions);
groups!(ReadsKeys: store: StoreOptions, region: RegionOptions, keys: KeyOptions);
groups!(Reads: store: StoreOptions, region: RegionOptions, keys: KeyOptions, values: ValueOptions);
groups!(DeletesKeys: store: StoreOptions, growth: GrowthOptions, region: RegionOptions, sync: SyncOptions, keys: KeyOptions);
groups!(Writes: store: StoreOptions, growth: GrowthOptions, region: RegionOptions, sync: SyncOptions, keys: KeyOptions, values: ValueOptions);
groups!(Salvages: keys: KeyOptions);
// Lines of the shell: the store is open.
groups!(LineReadsKeys: region: RegionOptions, keys: KeyOptions);
groups!(LineReads: region: RegionOptions, keys: KeyOptions, values: ValueOptions);
groups!(LineDeletes: region: RegionOptions, sync: SyncOptions, keys: KeyOptions);
groups!(LineWrites: region: RegionOptions, sync: SyncOptions, keys: KeyOptions, values: ValueOptions);
groups!(LineRegion: region: RegionOptions);

// A command with its groups of options. No documentation, see `Groups`: that of the command is shown.
#[derive(Debug, Args)]
#[allow(missing_docs, reason = "see `Groups`")]
pub struct With<G: Groups + Args, C: Args> {
    // First: the headings of the groups last for all that follows.
    #[command(flatten)]
    pub command: C,
    #[command(flatten)]
    pub groups: G,
}

// For commands that make a store where there is none. No documentation: it would become the command's.
#[derive(Debug, Args)]
#[allow(missing_docs, reason = "it would become the command's")]
pub struct Formatting {
    /// Make the store also over a file or block device that is not empty and holds no store: what is in it is lost
    #[arg(long = "format-store", visible_alias = "format")]
    pub format_store: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_particular_option_wins() {
        let keys = |encoding, escapes, key_encoding| Shared {
            keys: KeyOptions {
                encoding,
                escapes,
                key_encoding,
            },
            ..Shared::default()
        };
        let before = keys(Some(Encoding::Hex), false, None);
        let said = |given: Shared| {
            let merged = given.or(&before);
            (merged.key_encoding(), merged.value_encoding())
        };
        let (hex, escapes) = (Some(Encoding::Hex), Some(Encoding::Escapes));
        assert_eq!(said(Shared::default()), (hex, hex));
        assert_eq!(said(keys(None, true, None)), (escapes, escapes));
        let base64 = Some(Encoding::Base64);
        assert_eq!(said(keys(base64, false, escapes)), (escapes, base64));
        assert_eq!(said(keys(None, false, escapes)), (escapes, hex));
    }
}

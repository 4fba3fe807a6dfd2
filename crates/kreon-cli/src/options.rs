//! Options that several commands share, in groups. A command lists the groups that mean something to it; before
//! the command all of them are taken, as defaults for the command.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use kreon::Durability;

use crate::encoding::Encoding;
use crate::failure::{Failure, Result};
use crate::size::parse_size;

const STORE_VARIABLE: &str = "KREON_STORE";
const CLUSTER_VARIABLE: &str = "KREON_CLUSTER";
const KEY_FILE_VARIABLE: &str = "KREON_KEY_FILE";

/// The region that commands work in if none is named.
pub const DEFAULT_REGION: &str = "default";

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Store options")]
pub struct StoreOptions {
    /// The store: a file or a block device [env: KREON_STORE]
    #[arg(short, long, value_name = "PATH")]
    pub store: Option<PathBuf>,
    /// Memory budget of the store: 256MiB, 1g, 65536 [default: 256MiB, or 32MiB for commands that
    /// touch little]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<usize>,
    /// Tell more on standard error; twice for even more
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster options")]
pub struct ClusterOptions {
    /// A cluster in place of a store: zk://HOST[:PORT],HOST[:PORT]/NAME, with the hosts of its ZooKeeper [env: KREON_CLUSTER]
    #[arg(long, value_name = "URL")]
    pub cluster: Option<String>,
    /// Its key; without one it is reached on this machine only [env: KREON_KEY_FILE]
    #[arg(long, value_name = "PATH")]
    pub key_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Store options")]
pub struct GrowthOptions {
    /// Never let the volume grow beyond this
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub volume_max: Option<usize>,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Store options")]
pub struct EngineOptions {
    /// The engine of a store that is made; one that is there has its own [default: kreon]
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub engine: Option<Engine>,
}

/// What keeps the pairs of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Sorted on the device, with snapshots and transactions
    Kreon,
    /// Unsorted on the device, the index in memory: for point reads and durable writes of 0.4 to 64 KiB
    Kvell,
    /// One tree on the device that each write changes, pairs in a log: for few cycles where the tree fits in memory
    Tucana,
}

impl Engine {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kreon => "kreon",
            Self::Kvell => "kvell",
            Self::Tucana => "tucana",
        }
    }
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
    pub cluster: ClusterOptions,
    #[command(flatten)]
    pub growth: GrowthOptions,
    #[command(flatten)]
    pub engine: EngineOptions,
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
        // Who names the one after the command means it in place of the other.
        let says_place = self.store.store.is_some() || self.cluster.cluster.is_some();
        let before_place = (!says_place).then_some(before);
        Self {
            store: StoreOptions {
                store: self
                    .store
                    .store
                    .or_else(|| before_place?.store.store.clone()),
                memory: self.store.memory.or(before.store.memory),
                verbose: self.store.verbose + before.store.verbose,
            },
            cluster: ClusterOptions {
                cluster: self
                    .cluster
                    .cluster
                    .or_else(|| before_place?.cluster.cluster.clone()),
                key_file: self
                    .cluster
                    .key_file
                    .or_else(|| before.cluster.key_file.clone()),
            },
            growth: GrowthOptions {
                volume_max: self.growth.volume_max.or(before.growth.volume_max),
            },
            engine: EngineOptions {
                engine: self.engine.engine.or(before.engine.engine),
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

    /// Where to work: what an option names, else what the environment does.
    pub fn target(&self) -> Result<Target> {
        let options = (self.store.store.clone(), self.cluster.cluster.clone());
        let named = match options {
            (None, None) => (
                variable(STORE_VARIABLE).map(PathBuf::from),
                variable(CLUSTER_VARIABLE).map(|url| url.to_string_lossy().into_owned()),
            ),
            named => named,
        };
        match named {
            (Some(path), None) => Ok(Target::Store(path)),
            (None, Some(url)) => Ok(Target::Cluster(url)),
            (None, None) => Err(Failure::usage(
                "no store named: give --store PATH or set KREON_STORE, or name a cluster by --cluster URL or KREON_CLUSTER",
            )),
            (Some(_), Some(_)) => Err(Failure::usage(
                "a store and a cluster are named (--store, --cluster, KREON_STORE, KREON_CLUSTER): only one can be meant",
            )),
        }
    }

    /// The store that is meant, for commands that work on stores only.
    pub fn store_path(&self) -> Option<PathBuf> {
        let variable = || variable(STORE_VARIABLE).map(PathBuf::from);
        self.store.store.clone().or_else(variable)
    }

    /// The cluster that is meant, for commands that work on clusters only.
    pub fn cluster_url(&self) -> Option<String> {
        let variable = || variable(CLUSTER_VARIABLE).map(|url| url.to_string_lossy().into_owned());
        self.cluster.cluster.clone().or_else(variable)
    }

    /// The file of the cluster's key.
    pub fn key_file(&self) -> Option<PathBuf> {
        let variable = || variable(KEY_FILE_VARIABLE).map(PathBuf::from);
        self.cluster.key_file.clone().or_else(variable)
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

/// Where a command works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file or a block device.
    Store(PathBuf),
    /// A URL.
    Cluster(String),
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
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
groups!(OnStorePairs: store: StoreOptions, keys: KeyOptions, values: ValueOptions);
groups!(OnCluster: cluster: ClusterOptions);
groups!(MakesTables: cluster: ClusterOptions, keys: KeyOptions, values: ValueOptions);
groups!(OnRegions: store: StoreOptions, cluster: ClusterOptions, growth: GrowthOptions, engine: EngineOptions);
groups!(OnRegion: store: StoreOptions, growth: GrowthOptions, region: RegionOptions);
groups!(ReadsKeys: store: StoreOptions, cluster: ClusterOptions, region: RegionOptions, keys: KeyOptions);
groups!(Reads: store: StoreOptions, cluster: ClusterOptions, region: RegionOptions, keys: KeyOptions, values: ValueOptions);
groups!(DeletesKeys: store: StoreOptions, cluster: ClusterOptions, growth: GrowthOptions, region: RegionOptions, sync: SyncOptions, keys: KeyOptions);
groups!(Writes: store: StoreOptions, cluster: ClusterOptions, growth: GrowthOptions, engine: EngineOptions, region: RegionOptions, sync: SyncOptions, keys: KeyOptions, values: ValueOptions);
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
    fn a_store_or_a_cluster_is_meant_and_never_both() {
        let shared = |store: Option<&str>, cluster: Option<&str>| Shared {
            store: StoreOptions {
                store: store.map(PathBuf::from),
                ..StoreOptions::default()
            },
            cluster: ClusterOptions {
                cluster: cluster.map(str::to_owned),
                key_file: None,
            },
            ..Shared::default()
        };
        let store = Target::Store(PathBuf::from("x"));
        let cluster = Target::Cluster("zk://h/c".to_owned());
        let (on_store, on_cluster) = (shared(Some("x"), None), shared(None, Some("zk://h/c")));
        assert_eq!(on_store.target().unwrap(), store);
        assert_eq!(on_store.clone().or(&on_cluster).target().unwrap(), store);
        assert_eq!(on_cluster.clone().or(&on_store).target().unwrap(), cluster);
        assert_eq!(Shared::default().or(&on_cluster).target().unwrap(), cluster);
        let both = shared(Some("x"), Some("zk://h/c")).target().unwrap_err();
        assert_eq!(both.exit_code(), 2);
    }

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

//! Crash and fault torture of the store on a simulated device.
//!
//! - [`script`]: what is done, from a seed
//! - [`sequences`]: every short script
//! - [`model`]: what must be there after every prefix of it
//! - `load`: bulk loads
//! - [`content`]: what is there
//! - [`store`]: both together; [`settings`]: of the stores that are opened
//! - [`duet`]: background work at moments that a seed decides
//! - [`plan`]: which crash states are tried at a power cut
//! - [`stale`]: superblock slots that a device puts back
//! - [`reading`]: openings for reading only
//! - [`check`]: whether a crash state is what it must be
//! - [`course`]: a script carried out, and the power cuts in it
//! - [`crashes`]: all power cuts of many scripts
//! - [`mod@faults`]: every single failure of the device
//! - [`mod@feeds`]: followers of the change feed over power cuts
//! - [`mod@deleted_ranges`]: puts beside deletions of ranges, by threads
//! - [`mod@long_loads`]: loads of several segments, with checkpoints beside them
//! - [`mod@engines`]: the engines KVell and Tucana; [`mod@kvell`], [`mod@tucana`]: what is particular to each
//! - [`class`], [`workload`]: what fails, and while what is done
//! - [`trial`]: one store under one of them
//! - `planted` (feature): bugs on command, that all of this must find
//! - [`trace`]: power cuts of a real device
//! - [`mod@history`]: concurrent clients, and whether what they saw can be explained
//! - [`mod@metamorphic`]: the same operations under many settings
//! - [`mirror`]: a primary and a backup, cut at every moment of their stream
//! - [`mod@overwrites`]: garbage collection of the log
//! - [`mod@members`]: the primary of a group and a member that follows it
//! - [`mod@gaps`]: scans over stretches of deleted keys
//! - [`mod@backups`]: chains of backups
//! - [`mod@torn_tails`]: what is behind a torn place of the log
//! - [`silent`]: what it may say if the device lied
//! - [`mod@damage`]: every byte of every structure on disk
//! - `seeds`: the verdict on one seed, and runs of many
//! - [`watchdog`]: ends a run that hangs; [`hang`]: what that means
#![forbid(unsafe_code)]

pub mod backups;
pub mod check;
pub mod class;
pub mod content;
pub mod counts;
pub mod course;
pub mod crashes;
pub mod damage;
pub mod deleted_ranges;
pub mod duet;
pub mod engines;
pub mod faults;
pub mod feeds;
pub mod gaps;
pub mod hang;
pub mod history;
pub mod kvell;
mod load;
pub mod long_loads;
pub mod members;
pub mod metamorphic;
pub mod mirror;
pub mod model;
pub mod overwrites;
mod own_options;
pub mod plan;
#[cfg(feature = "planted")]
pub mod planted;
pub mod progress;
pub mod reading;
pub mod script;
mod seeds;
pub mod sequences;
pub mod settings;
pub mod silent;
pub mod stale;
pub mod store;
pub mod torn_tails;
pub mod trace;
pub mod trial;
pub mod tucana;
pub mod watchdog;
pub mod workload;

pub use backups::{backups, many_backups};
pub use counts::Counts;
pub use course::{Origin, State};
pub use crashes::{Sim, replay, sim};
pub use damage::{DamageArguments, Extent, damage, replay as replay_damage};
pub use deleted_ranges::deleted_ranges;
pub use faults::{faults, replay as replay_fault};
pub use feeds::{feeds, many_feeds};
pub use gaps::gaps;
pub use history::{Crowd, history, history_of};
pub use long_loads::long_loads;
pub use members::members;
pub use metamorphic::metamorphic;
pub use overwrites::overwrites;
pub use torn_tails::torn_tails;

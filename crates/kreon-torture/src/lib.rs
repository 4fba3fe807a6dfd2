//! Crash and fault torture of the store on a simulated device.
//!
//! - [`script`]: what is done, from a seed
//! - [`model`]: what must be there after every prefix of it
//! - [`content`]: what is there
//! - [`store`]: both together
//! - [`plan`]: which crash states are tried at a power cut
//! - [`check`]: whether a crash state is what it must be
//! - [`crashes`]: all power cuts of many scripts
//! - [`mod@faults`]: every single failure of the device
//! - [`class`], [`workload`]: what fails, and while what is done
//! - [`trial`]: one store under one of them
//! - `planted` (feature): bugs on command, that all of this must find
//! - [`trace`]: power cuts of a real device
//! - [`mod@history`]: concurrent clients, and whether what they saw can be explained
//! - [`mod@metamorphic`]: the same operations under many settings
//! - [`silent`]: what it may say if the device lied
//! - [`mod@damage`]: every byte of every structure on disk
//! - [`watchdog`]: ends a run that hangs
#![forbid(unsafe_code)]

pub mod check;
pub mod class;
pub mod content;
pub mod counts;
pub mod crashes;
pub mod damage;
pub mod faults;
pub mod history;
pub mod metamorphic;
pub mod model;
pub mod plan;
#[cfg(feature = "planted")]
pub mod planted;
pub mod script;
pub mod silent;
pub mod store;
pub mod trace;
pub mod trial;
pub mod watchdog;
pub mod workload;

pub use counts::Counts;
pub use crashes::{State, replay, sim};
pub use damage::{Extent, damage, replay as replay_damage};
pub use faults::{faults, replay as replay_fault};
pub use history::history;
pub use metamorphic::metamorphic;

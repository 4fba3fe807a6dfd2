//! Damage: every byte of every structure on disk is changed, and the store must tell or be right.
//!
//! - [`build`]: stores made call by call
//! - [`fixture`]: which stores: together they hold every structure
//! - [`part`], [`atlas`], [`tree_atlas`], [`log_atlas`]: which byte of a volume belongs to what, found
//!   without the store
//! - [`hurt`]: changes of bytes
//! - [`expect`]: what the store must say about them
//! - [`judge`]: what it says
//! - [`sweep`]: all changes
//! - [`live`]: changes under an open store
//! - [`run`]: doing them; `arguments`: the command

mod arguments;
pub mod atlas;
pub mod build;
pub mod expect;
pub mod fixture;
pub mod hurt;
pub mod judge;
pub mod live;
pub mod log_atlas;
pub mod part;
pub mod run;
pub mod sweep;
pub mod tree_atlas;

pub use arguments::DamageArguments;
pub use run::{Extent, damage, replay};

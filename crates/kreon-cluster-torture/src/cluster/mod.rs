//! The cluster that is tortured.
//!
//! - [`settings`]: how large; [`whole`]: all of its processes; [`serve`]: what one of them runs
//! - [`view`]: who is primary, as ZooKeeper says; [`entrance`]: clients of it

pub mod entrance;
pub mod serve;
pub mod settings;
pub mod view;
pub mod whole;

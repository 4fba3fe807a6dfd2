//! A cluster on one machine: ZooKeeper and servers as processes, `kreon cluster up` and `down`.

mod down;
mod end;
mod folder;
mod launch;
mod plan;
mod run;

pub use down::Down;
pub use run::Up;

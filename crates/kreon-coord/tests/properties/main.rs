//! What a coordinator promises, kept by the one in the process and by a real ZooKeeper alike; and what a real one does
//! when servers are killed and frozen.
//!
//! The real one is there if `cargo xtask zookeeper --fetch-only` fetched it. Otherwise its tests say on the standard
//! error that they were skipped; with `KREON_ZOOKEEPER_REQUIRED` in the environment they fail.

mod frozen;
mod house;
mod killed;
mod promises;
mod same;
mod seat;
mod times;

//! Real servers on a real ZooKeeper, killed, frozen, cut off and starved, under clients whose whole history is judged.
#![forbid(unsafe_code)]

mod clients;
mod place;

fn main() {}

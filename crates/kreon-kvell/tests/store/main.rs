//! The store through its handles.

mod arguments;
mod closing;
mod driving;
mod durability;
mod failures;
mod futures;
mod image;
mod scans;
mod scans_beside_writers;
mod scans_of_damage;
mod sizes;
mod space;
mod superblocks;
mod threads;
mod transfers;
mod used_devices;
mod verify;
mod world;

//! A store on a simulated device: what a power cut, a failed call and damage leave.

mod collection;
mod crashes;
mod failures;
mod full_volume;
mod gate;
mod given_back;
mod history;
mod hooked_device;
mod one_region;
mod opening;
mod panics;
mod read_ahead;
mod region_drops;
mod region_histories;
mod regions;
mod replay;
mod space;
mod threads;
mod world;

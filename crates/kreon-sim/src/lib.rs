//! A device in memory for tests: it records every write and flush, yields what any power cut could
//! have left, and fails on command. Everything follows from the calls and from seeds.
//!
//! ```
//! use kreon_device::{AlignedBuf, Device};
//! use kreon_sim::{Keep, SimDevice, SimOptions};
//!
//! let device = SimDevice::new(SimOptions::default());
//! device.grow(1 << 20)?;
//! let mut page = AlignedBuf::new(4096);
//! page.fill(7);
//! device.write_at(0, &page)?;
//! device.flush()?;
//! page.fill(8);
//! device.write_at(0, &page)?;
//!
//! // The power goes now. The second write was not flushed: any part of it may have arrived.
//! let history = device.history();
//! let crash = history.crash();
//! assert_eq!(crash.image(&mut Keep::Nothing).bytes(0, 1), [7]);
//! assert_eq!(crash.image(&mut Keep::All).bytes(0, 1), [8]);
//! let torn = crash.image(&mut Keep::Torn { write: 2, sectors: 1 });
//! assert_eq!((torn.bytes(0, 1), torn.bytes(512, 1)), (vec![8], vec![7]));
//!
//! // The store is opened again on what was left.
//! let after = SimDevice::from_image(torn, SimOptions::default());
//! # Ok::<(), kreon_base::Error>(())
//! ```
#![forbid(unsafe_code)]

mod backed;
mod crash;
mod dice;
mod digest;
mod fault;
mod history;
mod image;
mod pending;
mod sim_device;
mod sim_queue;
mod state;
mod survival;
mod turns;

pub use crash::Crash;
pub use dice::Dice;
pub use fault::{Call, Effect, Fault};
pub use history::{Content, Event, History};
pub use image::Image;
pub use pending::PendingWrite;
pub use sim_device::{SimDevice, SimOptions};
pub use survival::{Keep, Survival, Version};
pub use turns::{Moment, Turns};

/// The unit that a power cut never splits, in bytes.
pub const SECTOR_BYTES: usize = 512;

/// How many flushes back a device remembers what it held.
pub const PAST_FLUSHES: usize = 32;

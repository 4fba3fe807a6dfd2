//! A backup that is sealed at some moment, and how the end of its log is told.

use std::sync::Arc;
use std::time::Instant;

use kreon_base::Lsn;
use kreon_device::Device;
use kreon_engine::{Engine, Examined};
use kreon_replica::equalise::examine;
use kreon_sim::{Image, SimDevice};

use super::backup::{Moment, step};
use super::pair::device;

/// Seals a copy of the backup at a moment; what its file holds then.
///
/// # Errors
/// What went wrong.
pub fn seal(moment: &Moment) -> Result<Image, String> {
    let mut follower = moment.follower.clone();
    let device = device(moment.image.clone(), false);
    follower.seal();
    while step(&mut follower, &*device, Instant::now())? {}
    match follower.is_sealed() {
        true => {
            compare_ends(&device, follower.followed())?;
            Ok(device.image())
        }
        false => Err("a sealed backup does not end its work".to_owned()),
    }
}

/// The end of the log as it is told of a file that has followed a primary is the one that all of the log tells.
fn compare_ends(device: &Arc<SimDevice>, followed: Option<Lsn>) -> Result<(), String> {
    let device = Arc::clone(device) as Arc<dyn Device>;
    let Ok(whole) = Engine::examine(&device) else {
        return Ok(()); // no store yet
    };
    let short = examine(&device, followed).map_err(|error| format!("a short look: {error}"))?;
    let told = |of: &Examined| (of.superblock, of.log_end, of.log_segments.clone());
    match told(&short) == told(&whole) {
        true => Ok(()),
        false => Err(format!(
            "a short look behind {followed:?} tells {short:?}, the whole log {whole:?}"
        )),
    }
}

//! Openings for reading only: they show what an opening for writing would, and change nothing.

use std::sync::Arc;

use kreon_base::{ErrorKind, Result};
use kreon_device::Device;
use kreon_engine::{Engine, Options};
use kreon_sim::{Call, Image, SimDevice, SimOptions};

use crate::check::{is_sound, said};
use crate::content::{self, Content};
use crate::settings::with_memory_min;

/// Calls that change a device, or ask it to make changes durable.
const CHANGES: [Call; 5] = [
    Call::Write,
    Call::Flush,
    Call::Grow,
    Call::Allocate,
    Call::Discard,
];

/// Opens `image` for reading only, twice at once, reads and checks everything. The inner error is what the store said when
/// it was opened or read; the outer one what it must never do.
///
/// # Errors
/// What is wrong.
pub fn read(image: &Image, options: &Options) -> Result<Result<Content>, String> {
    let device = SimOptions::default();
    let device = Arc::new(SimDevice::from_image(image.clone(), device));
    let opened = || {
        let device = Arc::clone(&device) as Arc<dyn Device>;
        let options = Options {
            read_only: true,
            ..options.clone()
        };
        Engine::open(device, with_memory_min(options))
    };
    let found = opened().and_then(|engine| {
        let content = content::read(&engine)?;
        Ok((engine, content))
    });
    let outcome = found.map(|(engine, content)| {
        is_sound(&engine, &content)?;
        let other = opened().map_err(said("open once more"))?;
        let again = content::read(&other).map_err(said("read once more"))?;
        if again != content {
            let difference = content::difference(&content, &again);
            return Err(format!("a second reader differs: {difference}"));
        }
        engine.close().map_err(said("close"))?;
        Ok(content)
    });
    for call in CHANGES {
        let count = device.calls(call);
        if count > 0 {
            return Err(format!("a reader made {count} calls of {call:?}"));
        }
    }
    outcome.map_or_else(|error| Ok(Err(error)), |content| content.map(Ok))
}

/// Reads `image` and compares it with `content`, which an opening for writing has found there.
///
/// # Errors
/// What is wrong.
pub fn check(image: &Image, options: &Options, content: &Content) -> Result<(), String> {
    let told = |what: String| format!("for reading only: {what}");
    let found = match read(image, options).map_err(told)? {
        // The power was cut before there was a store; the opening for writing made an empty one.
        Err(error) if error.kind() == ErrorKind::NotFound && content.is_empty() => return Ok(()),
        found => found.map_err(said("open or read")).map_err(told)?,
    };
    match found == *content {
        true => Ok(()),
        false => Err(format!(
            "for reading only: {}",
            content::difference(content, &found)
        )),
    }
}

//! How engines of the hunts are opened, and on what.

use std::sync::Arc;

use kreon_base::Result;
use kreon_device::Device;
use kreon_engine::{Engine, Options, Work};
use kreon_sim::{Image, SimDevice, SimOptions};

/// Moves records: those of segments with dead ones, and those that do not lie together.
pub fn collect(engine: &Engine) -> Result<()> {
    engine.background(Work::Collect)?;
    engine.background(Work::LayTogether)
}

/// Opens an engine on a device in another way than [`Engine::open`].
pub type Opener = Arc<dyn Fn(Arc<dyn Device>, Options) -> Result<Arc<Engine>>>;

pub(super) fn device(image: Image, record: bool) -> Arc<SimDevice> {
    let options = SimOptions {
        record,
        len_bytes_max: 256 << 20,
        ..SimOptions::default()
    };
    Arc::new(SimDevice::from_image(image, options))
}

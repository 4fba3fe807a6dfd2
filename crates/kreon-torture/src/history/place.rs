//! Where a store lives: a simulated device, or a file.

use std::sync::Arc;

use kreon_base::{Error, Result};
use kreon_device::{Device, Facility, FileDevice, FileOptions};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};
use tempfile::TempDir;

use super::jitter::Jitter;

/// See the module's text.
pub enum Place {
    /// A device in memory.
    Sim {
        /// What it holds while nobody has it open.
        image: Image,
        /// The device of the open store.
        device: Option<Arc<SimDevice>>,
    },
    /// A file with these settings.
    File {
        /// Its folder.
        folder: TempDir,
        /// Settings.
        options: FileOptions,
    },
}

impl Place {
    /// A simulated device.
    pub fn sim() -> Self {
        Self::Sim {
            image: Image::default(),
            device: None,
        }
    }

    /// A file, with or without direct I/O and rings.
    pub fn file(dice: &mut Dice) -> Result<Self> {
        let facility = |on: u64| match on {
            0 => Facility::Off,
            _ => Facility::Auto,
        };
        let options = FileOptions {
            create: true,
            direct: facility(dice.below(2)),
            ring: facility(dice.below(3)),
            ..FileOptions::default()
        };
        let folder = tempfile::tempdir().map_err(|error| Error::io("make a folder", error))?;
        Ok(Self::File { folder, options })
    }

    /// Takes part in what is counted.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sim { .. } => "simulated device",
            Self::File { .. } => "file",
        }
    }

    /// The device to open a store on, with pauses.
    pub fn device(&mut self, seed: u64) -> Result<Arc<dyn Device>> {
        let under: Arc<dyn Device> = match self {
            Self::Sim { image, device } => {
                let options = SimOptions::default();
                let sim = Arc::new(SimDevice::from_image(image.clone(), options));
                *device = Some(Arc::clone(&sim));
                sim
            }
            Self::File { folder, options } => {
                let (file, _created) = FileDevice::open(folder.path().join("store"), options)?;
                Arc::new(file)
            }
        };
        Ok(Arc::new(Jitter::new(under, seed)))
    }

    /// The simulated device of the open store.
    pub fn sim_device(&self) -> Option<&Arc<SimDevice>> {
        match self {
            Self::Sim { device, .. } => device.as_ref(),
            Self::File { .. } => None,
        }
    }

    /// After the store was closed.
    pub fn closed(&mut self) {
        if let Self::Sim { image, device } = self
            && let Some(device) = device.take()
        {
            *image = device.image();
        }
    }

    /// After the power was cut: some of what was not flushed is lost.
    pub fn power_cut(&mut self, keep: &mut Keep) {
        if let Self::Sim { image, device } = self
            && let Some(device) = device.take()
        {
            *image = device.history().crash().image(keep);
        }
    }
}

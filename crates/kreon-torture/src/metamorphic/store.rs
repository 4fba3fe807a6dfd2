//! A store that is opened again and again with other settings, on a file or a simulated device.

use std::sync::Arc;

use kreon_base::{Error, Result};
use kreon_device::{Device, Facility, FileDevice, FileOptions};
use kreon_engine::{Durability, Engine, MappingModes, OpenSnapshot, RegionState};
use kreon_sim::{Dice, SimDevice, SimOptions};
use tempfile::TempDir;

use super::operations::REGIONS;
use super::settings::Settings;
use crate::content::{self, Content};
use crate::own_options::options_of;
use crate::settings::with_memory_min;

enum Place {
    Sim(Arc<SimDevice>),
    File(TempDir),
}

/// See the module's text.
pub struct Store {
    place: Place,
    /// It is closed at the end, after its snapshots.
    pub engine: Option<Engine>,
    /// Its regions.
    pub regions: Vec<Arc<RegionState>>,
    /// A snapshot, and what it must show.
    pub snapshot: Option<(Arc<OpenSnapshot>, Content)>,
}

/// The name of a region.
pub fn region_name(number: usize) -> String {
    format!("region{number}")
}

impl Store {
    /// A place for a store that is not open yet.
    ///
    /// # Errors
    /// There is none.
    pub fn new(dice: &mut Dice) -> Result<Self> {
        let place = match dice.below(2) {
            0 => {
                let block_bytes = [512, 4096][dice.below(2) as usize];
                let options = SimOptions {
                    block_bytes,
                    record: false,
                    ..SimOptions::default()
                };
                Place::Sim(Arc::new(SimDevice::new(options)))
            }
            _ => {
                let folder = tempfile::tempdir();
                Place::File(folder.map_err(|error| Error::io("make a folder", error))?)
            }
        };
        Ok(Self {
            place,
            engine: None,
            regions: Vec::new(),
            snapshot: None,
        })
    }

    /// What it stands on.
    pub fn name(&self) -> &'static str {
        match self.place {
            Place::Sim(_) => "simulated device",
            Place::File(_) => "file",
        }
    }

    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    /// Closes it, if it is open, and opens it under `settings`.
    pub fn open(&mut self, settings: &Settings) -> Result<()> {
        self.snapshot = None;
        self.regions.clear();
        if let Some(engine) = self.engine.take() {
            engine.close()?;
        }
        let mut engine = settings.engine.clone();
        let device: Arc<dyn Device> = match &self.place {
            Place::Sim(device) => {
                // The kernel knows nothing of it.
                engine.designs.mapping = MappingModes::default();
                Arc::clone(device) as Arc<dyn Device>
            }
            Place::File(folder) => {
                let options = FileOptions {
                    create: true,
                    direct: match engine.designs.mapping.reads_page_cache() {
                        true => Facility::Off,
                        false => settings.direct,
                    },
                    ring: settings.ring,
                    ..FileOptions::default()
                };
                Arc::new(FileDevice::open(folder.path().join("store"), &options)?.0)
            }
        };
        let engine = Engine::open(device, with_memory_min(engine))?;
        for number in 0..REGIONS {
            let name = region_name(number);
            let region = (name.as_str(), &options_of(&name));
            let region = engine.region_with_options(region, Durability::Sync)?;
            self.regions.push(region);
        }
        self.engine = Some(engine);
        Ok(())
    }

    /// Looks at everything: scans both ways, gets, the snapshot of before.
    ///
    /// # Errors
    /// What is not as in `expected`.
    pub fn check(&mut self, expected: &Content) -> std::result::Result<(), String> {
        let said = |error: Error| error.to_string();
        let engine = self.engine.as_ref().ok_or("the store is not open")?;
        if let Some((snapshot, old)) = self.snapshot.take() {
            let found = content::read_at(engine, &snapshot).map_err(said)?;
            if found != old {
                let what = content::difference(&old, &found);
                return Err(format!("a snapshot changed: {what}"));
            }
        }
        let found = content::read(engine).map_err(said)?;
        if found != *expected {
            return Err(content::difference(expected, &found));
        }
        content::cross_check(engine, expected).map_err(said)?
    }
}

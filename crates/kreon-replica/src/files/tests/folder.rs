//! A folder in memory whose power can fail.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::{Error, ErrorKind, Result};
use kreon_device::{Device, DeviceStats, Read, Write};
use kreon_sim::{Dice, Image, Keep, SimDevice, SimOptions};
use kreon_sync::{AtomicU64, Mutex, Ordering};

use super::super::Directory;

/// How many steps are done before the power fails.
#[derive(Clone)]
pub struct Power(Arc<AtomicU64>);

impl Power {
    pub fn for_ever() -> Self {
        Self::until(u64::MAX)
    }

    pub fn until(steps: u64) -> Self {
        Self(Arc::new(AtomicU64::new(steps)))
    }

    fn step(&self) -> Result<()> {
        match self.0.load(Ordering::SeqCst) {
            0 => Err(Error::new(ErrorKind::Closed, "the power has failed")),
            left => {
                self.0.store(left - 1, Ordering::SeqCst);
                Ok(())
            }
        }
    }
}

type Names = BTreeMap<String, Arc<SimDevice>>;

#[derive(Clone)]
enum Change {
    Made(String, Arc<SimDevice>),
    Renamed(String, String),
    Removed(String),
}

impl Change {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Made(name, device) => _ = names.insert(name.clone(), Arc::clone(device)),
            Self::Renamed(from, to) => {
                let device = names.remove(from).unwrap();
                assert!(names.insert(to.clone(), device).is_none());
            }
            Self::Removed(name) => _ = names.remove(name),
        }
    }
}

#[derive(Default)]
struct State {
    names: Names,
    durable: Names,
    /// Since the last sync.
    changes: Vec<Change>,
    free_bytes: u64,
}

impl State {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    fn device(&self, name: &str) -> Result<Arc<SimDevice>> {
        let missing = || Error::new(ErrorKind::NotFound, name.to_owned());
        self.names.get(name).cloned().ok_or_else(missing)
    }
}

#[derive(Clone)]
pub struct SimFolder {
    state: Arc<Mutex<State>>,
    power: Power,
}

fn device(image: Image) -> Arc<SimDevice> {
    Arc::new(SimDevice::from_image(image, SimOptions::default()))
}

impl SimFolder {
    pub fn new(power: Power, free_bytes: u64) -> Self {
        let state = State {
            free_bytes,
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            power,
        }
    }

    /// The same folder with other power.
    pub fn powered(&self, power: Power) -> Self {
        let state = Arc::clone(&self.state);
        Self { state, power }
    }

    pub fn set_free_bytes(&self, free_bytes: u64) {
        self.state.lock().free_bytes = free_bytes;
    }

    /// What a power cut leaves: of the changes of names the first ones, of writes any.
    pub fn crash(&self, dice: &mut Dice) -> Self {
        let state = self.state.lock();
        let mut names = state.durable.clone();
        let kept = dice.below(state.changes.len() as u64 + 1) as usize;
        for change in &state.changes[..kept] {
            change.apply(&mut names);
        }
        let image = |found: &Arc<SimDevice>, seed: u64| {
            let mut keep = match seed % 3 {
                0 => Keep::SomeWrites { seed },
                1 => Keep::SomeSectors { seed },
                _ => Keep::Nothing,
            };
            found.history().crash().image(&mut keep)
        };
        let names: Names = names
            .iter()
            .map(|(name, found)| (name.clone(), device(image(found, dice.roll()))))
            .collect();
        let state = State {
            durable: names.clone(),
            names,
            changes: Vec::new(),
            free_bytes: state.free_bytes,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            power: Power::for_ever(),
        }
    }
}

impl Directory for SimFolder {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.state.lock().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Device>> {
        let below = self.state.lock().device(name)?;
        let power = self.power.clone();
        Ok(Arc::new(Powered { below, power }))
    }

    fn create(&self, name: &str) -> Result<()> {
        self.power.step()?;
        let mut state = self.state.lock();
        assert!(!state.names.contains_key(name));
        let made = Change::Made(name.to_owned(), device(Image::default()));
        state.change(made);
        Ok(())
    }

    fn clone_blocks(&self, from: &str, to: &str) -> Result<bool> {
        self.power.step()?;
        let state = self.state.lock();
        let (image, to) = (state.device(from)?.image(), state.device(to)?);
        to.grow(image.len_bytes())?;
        // In pieces, of which a power cut may keep some.
        for offset in (0..image.len_bytes()).step_by(64 << 10) {
            let bytes = image.bytes(offset, 64 << 10);
            let mut piece = kreon_device::AlignedBuf::new(bytes.len());
            piece.copy_from_slice(&bytes);
            to.write_at(offset, &piece)?;
        }
        Ok(true)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.power.step()?;
        let renamed = Change::Renamed(from.to_owned(), to.to_owned());
        self.state.lock().change(renamed);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.power.step()?;
        self.state.lock().change(Change::Removed(name.to_owned()));
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.power.step()?;
        let mut state = self.state.lock();
        state.durable = state.names.clone();
        state.changes.clear();
        Ok(())
    }

    fn taken_bytes(&self, name: &str) -> Result<u64> {
        Ok(self.state.lock().device(name)?.space_bytes())
    }

    fn free_bytes(&self) -> Option<u64> {
        Some(self.state.lock().free_bytes)
    }
}

/// A device on the same power.
struct Powered {
    below: Arc<SimDevice>,
    power: Power,
}

impl Device for Powered {
    fn block_bytes(&self) -> u32 {
        self.below.block_bytes()
    }

    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn len_bytes_max(&self) -> u64 {
        self.below.len_bytes_max()
    }

    fn grow(&self, len_bytes: u64) -> Result<()> {
        self.power.step()?;
        self.below.grow(len_bytes)
    }

    fn allocate(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.power.step()?;
        self.below.allocate(offset, len_bytes)
    }

    fn discard(&self, offset: u64, len_bytes: u64) -> Result<()> {
        self.power.step()?;
        self.below.discard(offset, len_bytes)
    }

    fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        self.below.read(reads)
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        self.power.step()?;
        self.below.write(writes)
    }

    fn flush(&self) -> Result<()> {
        self.power.step()?;
        self.below.flush()
    }

    fn stats(&self) -> DeviceStats {
        self.below.stats()
    }
}

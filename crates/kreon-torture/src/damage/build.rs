//! Building a store call by call, beside the record of what it holds after each unit.

use std::collections::BTreeMap;
use std::sync::Arc;

use kreon_base::Result;
use kreon_device::Device;
use kreon_engine::{Background, Durability, Engine, OpenSnapshot, Operation, Options, Terms};
use kreon_sim::{Call, Effect, Fault, Image, Keep, SimDevice, SimOptions};

use crate::content::{self, Content, Digest};
use crate::script::Value;
use crate::settings::with_memory_min;

/// Where a volume of these stores ends at the latest.
const VOLUME_BYTES_MAX: u64 = 256 << 20;

/// One L0: large enough that nothing is spilled unless a checkpoint is asked for.
const L0_BYTES: usize = 1 << 20;

/// Settings of a store that is damaged, and of the open that meets the damage: the least memory, no
/// background threads.
pub fn options() -> Options {
    Options {
        memory_bytes: kreon_engine::MEMORY_BYTES_MIN,
        l0_bytes: Some(L0_BYTES),
        volume_bytes_max: VOLUME_BYTES_MAX,
        background: Background::Inline,
        store_id: Some(0x6b72_656f_6e5f_646d),
        ..Options::default()
    }
}

/// A device that holds `image`.
pub fn device(image: Image, record: bool) -> Arc<SimDevice> {
    let options = SimOptions {
        record,
        len_bytes_max: VOLUME_BYTES_MAX,
        ..SimOptions::default()
    };
    Arc::new(SimDevice::from_image(image, options))
}

/// Opens the store on `device` for reading only.
pub fn open_to_read(device: &Arc<SimDevice>) -> Result<Engine> {
    let options = Options {
        read_only: true,
        ..options()
    };
    let device = Arc::clone(device) as Arc<dyn Device>;
    Engine::open(device, with_memory_min(options))
}

/// Opens what stands on `device`.
pub fn open(device: &Arc<SimDevice>) -> Result<Engine> {
    Engine::open(
        Arc::clone(device) as Arc<dyn Device>,
        with_memory_min(options()),
    )
}

/// A put of a value of so many bytes, or a deletion: region, key, length.
pub type Change<'a> = (&'a str, Vec<u8>, Option<usize>);

/// A store under construction.
pub struct Builder {
    device: Arc<SimDevice>,
    engine: Engine,
    content: Content,
    /// What the store held at the last checkpoint and after each unit since.
    history: Vec<Content>,
    snapshot: Option<Arc<OpenSnapshot>>,
    values: u64,
}

impl Builder {
    /// A new store.
    pub fn new() -> Result<Self> {
        let device = device(Image::default(), true);
        Ok(Self {
            engine: open(&device)?,
            device,
            content: Content::new(),
            history: vec![Content::new()],
            snapshot: None,
            values: 0,
        })
    }

    /// Makes a region.
    pub fn region(&mut self, name: &str) -> Result<()> {
        self.engine.region(name)?;
        self.content.entry(name.to_owned()).or_default();
        for content in &mut self.history {
            content.entry(name.to_owned()).or_default();
        }
        Ok(())
    }

    /// One unit.
    pub fn write(&mut self, changes: &[Change<'_>], durability: Durability) -> Result<()> {
        let mut values = Vec::new();
        for (_, _, len_bytes) in changes {
            self.values += 1;
            let seed = self.values;
            values.push(len_bytes.map(|len_bytes| Value { len_bytes, seed }.bytes()));
        }
        let mut regions = BTreeMap::new();
        for (region, ..) in changes {
            regions.insert(*region, self.engine.existing_region(region)?);
        }
        let both = changes.iter().zip(&values);
        let operations: Vec<_> = both
            .clone()
            .filter_map(|((region, key, _), value)| {
                Some(Operation {
                    region: regions.get(region)?,
                    key,
                    value: value.as_deref(),
                    is_range: false,
                    terms: Terms::default(),
                })
            })
            .collect();
        self.engine.write(&operations, durability)?;
        for ((region, key, _), value) in both {
            let pairs = self.content.entry((*region).to_owned()).or_default();
            match value {
                Some(value) => drop(pairs.insert(key.clone(), Digest::of(value))),
                None => drop(pairs.remove(key)),
            }
        }
        self.history.push(self.content.clone());
        Ok(())
    }

    /// A unit of one put.
    pub fn put(
        &mut self,
        region: &str,
        key: &[u8],
        len_bytes: usize,
        durability: Durability,
    ) -> Result<()> {
        self.write(&[(region, key.to_vec(), Some(len_bytes))], durability)
    }

    /// A unit of one deletion.
    pub fn delete(&mut self, region: &str, key: &[u8]) -> Result<()> {
        self.write(&[(region, key.to_vec(), None)], Durability::Buffered)
    }

    /// Spills everything.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.engine.checkpoint()?;
        self.history = vec![self.content.clone()];
        Ok(())
    }

    /// Keeps what is there now visible to a reader, until the next call or the end of the store.
    pub fn snapshot(&mut self) {
        self.snapshot = Some(self.engine.snapshot());
    }

    /// Nobody sees older versions from here on.
    pub fn release(&mut self) {
        self.snapshot = None;
    }

    /// Closes and opens: the log goes on behind the end of this run.
    pub fn reopen(&mut self) -> Result<()> {
        self.snapshot = None;
        self.engine.close()?;
        self.engine = open(&self.device)?;
        Ok(())
    }

    /// Writes three units of which the device takes only so many sectors; then the power goes. What is
    /// left, torn, is the image; what of it counts is the content.
    ///
    /// # Errors
    /// An outer one of the store; an inner one if it holds what it never held.
    pub fn tear(&mut self, region: &str, sectors: u64) -> Result<Result<Image, String>> {
        for number in 0..3_u8 {
            let key = [b't', b'o', b'r', b'n', number];
            self.put(region, &key, 700, Durability::Buffered)?;
        }
        let torn = Fault::nth(1, Call::Write, Effect::Partial { sectors });
        self.device.inject(torn);
        if self.engine.sync().is_ok() {
            return Ok(Err("a write that was cut short was not noticed".to_owned()));
        }
        self.snapshot = None;
        let image = self.device.history().crash().image(&mut Keep::All);
        let left = content::read(&open(&device(image.clone(), false))?)?;
        let Some(found) = self.history.iter().rposition(|content| *content == left) else {
            return Ok(Err("no prefix survived a power cut".to_owned()));
        };
        self.history.truncate(found + 1);
        self.content = left;
        Ok(Ok(image))
    }

    /// Goes on with what stands in `image`.
    pub fn restart(&mut self, image: Image) -> Result<()> {
        self.device = device(image, true);
        self.engine = open(&self.device)?;
        Ok(())
    }

    /// What a reader of the device sees now.
    pub fn image(&self) -> Image {
        self.device.image()
    }

    /// What the store held at the last checkpoint and after each unit since.
    pub fn history(&self) -> &[Content] {
        &self.history
    }

    /// Closes.
    pub fn close(self) -> Result<(Image, Vec<Content>)> {
        drop(self.snapshot);
        self.engine.close()?;
        Ok((self.device.image(), self.history))
    }
}

//! A whole volume with damage: opened, read, verified, written, opened again.

use std::collections::BTreeSet;
use std::sync::Arc;

use arbitrary::Arbitrary;
use kreon_base::{Error, ErrorKind, LogOffset, PAGE_BYTES, PageNo, SEGMENT_BYTES};
use kreon_device::Device;
use kreon_engine::{Durability, Engine, Operation, Options, Terms};
use kreon_format::SUPERBLOCK_PAGES;
use kreon_sim::{Image, SimDevice, SimOptions};
use kreon_torture::content::{self, Content, Digest};
use kreon_torture::settings;

use crate::case::with;
use crate::seal;
use crate::volume::{Volume, page_of, template};

/// What happens to the volume. Pages are numbered among those that hold something.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Damage {
    /// A few bytes, as a fault of the device leaves them.
    Burst { page: u8, at: u16, bytes: [u8; 4] },
    /// One bit.
    Flip { page: u8, bit: u16 },
    /// A page of an earlier time.
    Stale { page: u8 },
    /// A page that lost its content.
    Zero { page: u8 },
    /// Two pages in each other's place.
    Swap { one: u8, other: u8 },
    /// The volume ends early.
    Truncate { pages: u16 },
    /// Bytes, and then everything is made to verify: what a fault of the store would write.
    Forge { page: u8, at: u16, bytes: [u8; 4] },
    /// A number, and then everything is made to verify.
    ForgeNumber { page: u8, at: u8, value: u64 },
}

/// A volume on which damage is done.
struct Patient {
    image: Image,
    /// Something was forged: any answer is right.
    forged: bool,
    /// Pages that were damaged by a burst of bits: more of it could make a page that verifies.
    hurt: BTreeSet<PageNo>,
}

/// See the module's text.
pub fn store_file(bytes: &[u8]) {
    with(bytes, |u| {
        let volume = template();
        let mut patient = Patient {
            image: volume.image.clone(),
            forged: false,
            hurt: BTreeSet::new(),
        };
        for _ in 0..u.int_in_range(1..=4)? {
            patient.hurt(volume, Damage::arbitrary(u)?);
        }
        // All slots of the superblock in an older state: nothing can tell.
        let same = |page: &PageNo| page_of(&patient.image, *page) == page_of(&volume.image, *page);
        let trusted = SUPERBLOCK_PAGES.iter().any(same) && !patient.forged;
        examine(patient.image, trusted.then_some(&volume.states[..]));
        Ok(())
    });
}

impl Patient {
    fn hurt(&mut self, volume: &Volume, damage: Damage) {
        let page_at = |n: u8| volume.pages[usize::from(n) % volume.pages.len()];
        match damage {
            Damage::Burst { page, at, bytes } => {
                let page = page_at(page);
                if self.hurt.insert(page) {
                    self.write(page, at, &bytes);
                }
            }
            Damage::Flip { page, bit } => {
                let page = page_at(page);
                if self.hurt.insert(page) {
                    let offset = page.offset_bytes() + u64::from(bit / 8) % PAGE_BYTES as u64;
                    self.image.flip_bit(offset, bit as u8 % 8);
                }
            }
            Damage::Stale { page } => {
                let page = page_at(page);
                self.image
                    .write(page.offset_bytes(), &page_of(&volume.older, page));
            }
            Damage::Zero { page } => {
                self.image
                    .write(page_at(page).offset_bytes(), &[0; PAGE_BYTES]);
            }
            Damage::Swap { one, other } => {
                let (one, other) = (page_at(one), page_at(other));
                let (a, b) = (page_of(&self.image, one), page_of(&self.image, other));
                self.image.write(one.offset_bytes(), &b);
                self.image.write(other.offset_bytes(), &a);
            }
            Damage::Truncate { pages } => {
                let len_bytes = u64::from(pages) * PAGE_BYTES as u64;
                self.image.set_len(len_bytes.min(self.image.len_bytes()));
            }
            Damage::Forge { page, at, bytes } => self.forge(volume, page_at(page), at, &bytes),
            Damage::ForgeNumber { page, at, value } => {
                // Most fields stand at multiples of four near the front of a page.
                let at = u16::from(at) * 4;
                self.forge(volume, page_at(page), at, &value.to_le_bytes());
            }
        }
    }

    /// Writes within a page; returns where that is on the volume.
    fn write(&mut self, page: PageNo, at: u16, bytes: &[u8]) -> u64 {
        let at = usize::from(at) % (PAGE_BYTES - bytes.len() + 1);
        let offset = page.offset_bytes() + at as u64;
        self.image.write(offset, bytes);
        offset
    }

    fn forge(&mut self, volume: &Volume, page: PageNo, at: u16, bytes: &[u8]) {
        self.forged = true;
        let offset = self.write(page, at, bytes);
        let fragment = volume.fragments.range(..=offset).next_back();
        let is_record = !volume.links.contains_key(&page)
            && fragment.is_some_and(|(start, _)| PageNo::containing(*start) == page);
        match fragment.filter(|_| is_record) {
            Some((&start, seal)) => {
                let rest_bytes = SEGMENT_BYTES - start % SEGMENT_BYTES;
                let mut bytes = self.image.bytes(start, rest_bytes as usize);
                seal::fragment(&mut bytes, seal, LogOffset(start));
                self.image.write(start, &bytes[..4]);
            }
            None => self.reseal(volume, page),
        }
    }

    /// Makes a page verify, and all that state its checksum, up to the superblock.
    fn reseal(&mut self, volume: &Volume, page: PageNo) {
        let mut bytes = page_of(&self.image, page);
        let checksum = seal::page(&mut bytes, volume.store, page);
        self.image.write(page.offset_bytes(), &bytes);
        for link in volume.links.get(&page).into_iter().flatten() {
            let at = link.parent.offset_bytes() + link.at as u64;
            self.image.write(at, &checksum.to_le_bytes());
            self.reseal(volume, link.parent);
        }
    }
}

fn options() -> Options {
    Options {
        create: false,
        ..settings::options()
    }
}

/// Goes through the life of a store on `image`. With `states` given, every answer must be one of
/// these states or an honest error; else there must be an answer.
fn examine(image: Image, states: Option<&[Content]>) {
    let options_of_device = SimOptions {
        record: false,
        len_bytes_max: 256 << 20,
        ..SimOptions::default()
    };
    let device = Arc::new(SimDevice::from_image(image, options_of_device));
    let open = || Engine::open(Arc::clone(&device) as Arc<dyn Device>, options());
    let engine = match open() {
        Ok(engine) => engine,
        Err(error) => return is_honest(&error, states),
    };
    read(&engine, states);
    match engine.verify() {
        Ok(report) => drop(format!("{report:?}")),
        Err(error) => is_honest(&error, states),
    }
    let wrote = write(&engine);
    if let Err(error) = engine.checkpoint() {
        is_honest(&error, states);
    }
    drop(engine);
    match open() {
        Ok(engine) => {
            let found = written(&engine);
            assert!(states.is_none() || !wrote || found.is_some_and(|right| right));
            let _ = content::read(&engine);
        }
        Err(error) => is_honest(&error, states),
    }
}

const NEW_KEY: &[u8] = b"written after the damage";

/// Puts a value; whether that was acknowledged as durable.
fn write(engine: &Engine) -> bool {
    let Ok(region) = engine.region("c") else {
        return false;
    };
    let put = Operation {
        region: &region,
        key: NEW_KEY,
        value: Some(&[9; 100]),
        is_range: false,
        terms: Terms::default(),
    };
    engine.write(&[put], Durability::Sync).is_ok()
}

/// Whether the new value is there; nothing if the store cannot tell.
fn written(engine: &Engine) -> Option<bool> {
    let region = engine.existing_region("c").ok()?;
    let right = engine.get(&region, NEW_KEY, None, |value| value == [9; 100]);
    right.ok().map(|found| found == Some(true))
}

/// Reads everything in every way: by scans in both directions and by gets, and what a scan does not get
/// at, key by key.
fn read(engine: &Engine, states: Option<&[Content]>) {
    let found = match content::read(engine) {
        Ok(found) => found,
        Err(error) => {
            is_honest(&error, states);
            return read_each(engine, states);
        }
    };
    let known = states.is_none_or(|states| states.contains(&found));
    assert!(known, "a content that never was");
    match content::cross_check(engine, &found) {
        Ok(differences) => assert!(states.is_none() || differences.is_ok(), "{differences:?}"),
        Err(error) => is_honest(&error, states),
    }
}

fn read_each(engine: &Engine, states: Option<&[Content]>) {
    for (name, pairs) in template().states.last().into_iter().flatten() {
        let Ok(region) = engine.existing_region(name) else {
            assert!(states.is_none(), "region {name} is gone");
            continue;
        };
        for key in pairs.keys() {
            match engine.get(&region, key, None, Digest::of) {
                Ok(value) => assert!(was(states, name, key, value), "{key:?} was never {value:?}"),
                Err(error) => is_honest(&error, states),
            }
        }
    }
}

/// Whether a key had this value in one of the states.
fn was(states: Option<&[Content]>, region: &str, key: &[u8], value: Option<Digest>) -> bool {
    let Some(states) = states else {
        return true;
    };
    let of = |state: &Content| state.get(region).and_then(|pairs| pairs.get(key)).copied();
    states.iter().any(|state| of(state) == value)
}

/// Damage is told as such. What was forged may be told as anything.
fn is_honest(error: &Error, states: Option<&[Content]>) {
    let honest = matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Poisoned);
    assert!(states.is_none() || honest, "damage was told as {error}");
}

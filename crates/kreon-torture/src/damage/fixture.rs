//! Stores that hold, among them, an instance of every structure on disk.

use kreon_base::{Error, REGION_NAME_BYTES_MAX, Result};
use kreon_engine::Durability::{Buffered, Sync};
use kreon_sim::{Dice, Image};

use super::build::Builder;
use crate::content::Content;

/// A store to be damaged.
pub struct Fixture {
    /// Its name.
    pub name: &'static str,
    /// The whole device.
    pub image: Image,
    /// What stood on the device some checkpoints earlier: what a lost write leaves.
    pub older: Image,
    /// What the store held at its last checkpoint and after each unit since; the last is what it holds.
    pub contents: Vec<Content>,
}

impl Fixture {
    /// What the store holds.
    pub fn content(&self) -> &Content {
        const NOTHING: &Content = &Content::new();
        self.contents.last().unwrap_or(NOTHING)
    }
}

/// Names of all fixtures.
pub const NAMES: [&str; 4] = ["trees", "tail", "chain", "groups"];

/// Makes the fixture called `name`.
///
/// # Errors
/// `NotFound`; of the store.
pub fn make(name: &str) -> Result<Fixture> {
    match name {
        "trees" => trees(),
        "tail" => tail(),
        "chain" => chain(),
        "groups" => groups(),
        _ => Err(Error::new(
            kreon_base::ErrorKind::NotFound,
            format!("there is no fixture {name:?}"),
        )),
    }
}

/// `len_bytes` random bytes.
fn noise(seed: u64, len_bytes: usize) -> Vec<u8> {
    crate::script::Value { len_bytes, seed }.bytes()
}

/// Pairs of long keys that differ in their last byte only: pivots between two of a pair are long, so
/// that few pages make a high tree.
fn tall_key(number: u64) -> Vec<u8> {
    let mut key = noise(number / 2 + 7, 990);
    key.push(b'a' + (number % 2) as u8);
    key
}

/// Longer than what a node keeps of a key; three at a time differ only behind that.
fn long_key(number: u64) -> Vec<u8> {
    let mut key = vec![b'k' + (number / 3) as u8; 1200];
    key.extend_from_slice(&number.to_be_bytes());
    key
}

fn short_key(number: u64) -> Vec<u8> {
    format!("key-{number:05}").into_bytes()
}

/// High trees with every kind of entry, a catalogue of several pages, a short log behind the marker.
fn trees() -> Result<Fixture> {
    let mut store = Builder::new()?;
    for name in ["tall", "short", "long"] {
        store.region(name)?;
    }
    for number in 0..18_u8 {
        let name = char::from(b'a' + number)
            .to_string()
            .repeat(REGION_NAME_BYTES_MAX);
        store.region(&name)?;
    }
    for number in 0..110 {
        store.put("tall", &tall_key(number), 20, Buffered)?;
    }
    for number in 0..160 {
        // Inline up to 64 bytes; the others stay in the log, a few over several of its pages.
        let len_bytes = [0, 7, 33, 64, 65, 200, 333, 1000][number as usize % 8];
        store.put("short", &short_key(number), len_bytes, Buffered)?;
    }
    store.put("short", b"", 11, Buffered)?;
    store.put("short", b"wide", 9000, Buffered)?;
    for number in 0..12 {
        let len_bytes = if number % 2 == 0 { 30 } else { 700 };
        store.put("long", &long_key(number), len_bytes, Buffered)?;
    }
    store.checkpoint()?;
    // Versions that only the snapshot sees, and deletions that must stay because of them.
    store.snapshot();
    for number in (0..160).step_by(9) {
        store.put("short", &short_key(number), 50 + number as usize, Buffered)?;
    }
    for number in (4..160).step_by(13) {
        store.delete("short", &short_key(number))?;
    }
    for number in [1, 4] {
        store.delete("long", &long_key(number))?;
        store.put("long", &long_key(number + 1), 90, Buffered)?;
    }
    store.checkpoint()?;
    let older = store.image();
    for number in (0..110).step_by(17) {
        store.put("tall", &tall_key(number), 120, Buffered)?;
    }
    store.put("short", &short_key(77), 99, Buffered)?;
    store.checkpoint()?;
    store.put("short", &short_key(3), 400, Buffered)?;
    store.put("tall", &tall_key(5), 15, Sync)?;
    store.delete("short", &short_key(12))?;
    let (image, contents) = store.close()?;
    Ok(Fixture {
        name: "trees",
        image,
        older,
        contents,
    })
}

/// A log behind the marker with all that can stand there: single records, batches, values over several
/// segments, pads of flushes and of segment ends, three runs, two of them with torn tails.
fn tail() -> Result<Fixture> {
    let mut store = Builder::new()?;
    store.region("one")?;
    store.region("two")?;
    for number in 0..40 {
        store.put(
            "one",
            &short_key(number),
            30 + 20 * number as usize,
            Buffered,
        )?;
    }
    // What fills the segment is dead by the time anybody reads, so that reading stays quick.
    store.put("two", b"filler", 1_900_000, Buffered)?;
    store.put("two", b"spanning", 300_000, Buffered)?;
    store.delete("two", b"filler")?;
    store.checkpoint()?;
    run(&mut store, 0)?;
    let older = store.image();
    // It stands over the end of the segment, with a batch behind it.
    store.put("two", b"filler", 1_700_000, Buffered)?;
    store.put("two", b"giant", 300_000, Sync)?;
    store.delete("two", b"filler")?;
    run(&mut store, 1)?;
    let torn = store.tear("one", 2)?.map_err(Error::invalid)?;
    store.restart(torn)?;
    run(&mut store, 2)?;
    store.reopen()?;
    run(&mut store, 3)?;
    let image = store.tear("two", 3)?.map_err(Error::invalid)?;
    let contents = store.history().to_vec();
    Ok(Fixture {
        name: "tail",
        image,
        older,
        contents,
    })
}

/// Some units, with flushes between them.
fn run(store: &mut Builder, round: u64) -> Result<()> {
    let mut dice = Dice::new(round);
    store.put("one", &short_key(round), 55, Sync)?;
    for number in 0..3 {
        let key = short_key(100 * round + number);
        store.put("two", &key, dice.below(300) as usize, Buffered)?;
    }
    let mut batch = vec![("one", short_key(round + 20), None)];
    for number in 0..4 {
        let len_bytes = dice.below(200) as usize;
        batch.push(("two", short_key(200 + number), Some(len_bytes)));
    }
    store.write(&batch, Sync)?;
    store.put("one", &long_key(round), 10, Sync)?;
    store.delete("two", &short_key(100 * round))?;
    store.put("two", b"last of the round", 800, Sync)
}

/// A log behind the marker over so many segments that the catalogue does not know the last ones, one of
/// them without a single pad.
fn chain() -> Result<Fixture> {
    let mut store = Builder::new()?;
    store.region("r")?;
    store.put("r", b"first", 70, Buffered)?;
    store.checkpoint()?;
    let older = store.image();
    store.put("r", b"long", 6_500_000, Sync)?;
    store.delete("r", b"long")?;
    store.put("r", b"acknowledged", 90, Sync)?;
    store.put("r", b"last", 90, Sync)?;
    let (image, contents) = store.close()?;
    Ok(Fixture {
        name: "chain",
        image,
        older,
        contents,
    })
}

/// A volume of two groups, with live records in the second.
fn groups() -> Result<Fixture> {
    let mut store = Builder::new()?;
    store.region("r")?;
    for number in 0..46 {
        store.put("r", &short_key(number), 2 << 20, Buffered)?;
    }
    for number in 100..120 {
        store.put("r", &short_key(number), 500, Buffered)?;
    }
    let older = store.image();
    for number in 0..46 {
        store.delete("r", &short_key(number))?;
    }
    store.checkpoint()?;
    store.put("r", b"behind", 80, Sync)?;
    store.checkpoint()?;
    store.put("r", b"last", 80, Sync)?;
    store.put("r", b"very last", 80, Sync)?;
    let (image, contents) = store.close()?;
    Ok(Fixture {
        name: "groups",
        image,
        older,
        contents,
    })
}

//! What a store says about damage, and whether it may.

use std::collections::BTreeMap;

use ::tucana::{Direction, ErrorKind, ScanRange};

use super::super::store::Tucana;
use super::fixture::{Fixture, device, open};
use crate::damage::hurt::{Edit, Hurt};
use crate::engines::{Durability, Engine};

/// Bytes of the slots of the superblock, and what lies between them.
const SUPERBLOCKS_BYTES: u64 = 25 * 4096;

/// How a store took damage, as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The opening said `Corruption`.
    Refused,
    /// A read said it, and the verification.
    Told,
    /// The verification alone said it: no key depends on what was hit.
    Verified,
    /// Everything is right.
    Harmless,
}

/// Opens a store on the hurt volume, reads everything, goes on, and opens it once more.
pub(super) fn reopened(fixture: &Fixture, hurt: &Hurt) -> Result<Outcome, String> {
    let device = device(hurt.apply(&fixture.image, &fixture.older));
    let is_told = |kind| match kind {
        ErrorKind::Corruption => true,
        // A superblock may have become that of something else.
        ErrorKind::InvalidArgument => hurt.0.iter().all(is_of_superblock),
        _ => false,
    };
    let store = match open(&device) {
        Ok(store) => store,
        Err(error) if is_told(error.kind()) => return Ok(Outcome::Refused),
        Err(error) => return Err(format!("the opening failed: {error}")),
    };
    let told = compare(&store, &fixture.pairs)?;
    let verified = match store.store.verify() {
        Ok(found) if found.keys == fixture.pairs.len() as u64 => true,
        Ok(found) => return Err(format!("a verification finds {} keys", found.keys)),
        Err(error) if error.kind() == ErrorKind::Corruption => false,
        Err(error) => return Err(format!("a verification failed: {error}")),
    };
    if told > 0 && verified {
        return Err("a read says Corruption, a verification nothing".into());
    }
    goes_on(fixture, &device, store)?;
    Ok(match (told, verified) {
        (1.., _) => Outcome::Told,
        (_, false) => Outcome::Verified,
        _ => Outcome::Harmless,
    })
}

/// Changes a key, commits, and compares what the next opening finds.
fn goes_on(
    fixture: &Fixture,
    device: &std::sync::Arc<kreon_sim::SimDevice>,
    store: Tucana,
) -> Result<(), String> {
    let mut pairs = fixture.pairs.clone();
    let key = b"a key that is new".to_vec();
    match store.change(&key, Some(b"value"), Durability::Buffered) {
        Ok(_) => drop(pairs.insert(key, b"value".to_vec())),
        Err(error) if error.kind() == ErrorKind::Corruption => {}
        Err(error) => return Err(format!("a put failed: {error}")),
    }
    match store.close() {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::Corruption => pairs = fixture.pairs.clone(),
        Err(error) => return Err(format!("a close failed: {error}")),
    }
    match open(device) {
        Ok(store) => compare(&store, &pairs).map(drop),
        Err(error) if error.kind() == ErrorKind::Corruption => Ok(()),
        Err(error) => Err(format!("the second opening failed: {error}")),
    }
}

/// Gets all keys, and scans them in both orders. How many reads said `Corruption`.
fn compare(store: &Tucana, pairs: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<usize, String> {
    let mut told = 0;
    for (key, wanted) in pairs {
        match store.get(key) {
            Ok(Some(found)) if found == *wanted => {}
            Ok(found) => {
                let bytes = found.map(|found| found.len());
                let key = key.escape_ascii();
                return Err(format!(
                    "key {key} has {bytes:?} bytes that are not its value"
                ));
            }
            Err(error) if error.kind() == ErrorKind::Corruption => told += 1,
            Err(error) => return Err(format!("a get failed: {error}")),
        }
    }
    for direction in [Direction::Forward, Direction::Reverse] {
        told += scanned(store, pairs, direction)?;
    }
    Ok(told)
}

fn scanned(
    store: &Tucana,
    pairs: &BTreeMap<Vec<u8>, Vec<u8>>,
    direction: Direction,
) -> Result<usize, String> {
    let (mut told, mut shown) = (0, 0);
    for pair in store.scan(&ScanRange::default(), direction) {
        match pair {
            Ok((key, value)) if pairs.get(&key) == Some(&value) => shown += 1,
            Ok((key, _)) => return Err(format!("a scan shows {} wrongly", key.escape_ascii())),
            Err(error) if error.kind() == ErrorKind::Corruption => told += 1,
            Err(error) => return Err(format!("a scan failed: {error}")),
        }
        if told > pairs.len() {
            return Err("a scan fails on and on".into());
        }
    }
    match told == 0 && shown != pairs.len() {
        true => Err(format!("a scan shows {shown} of {} keys", pairs.len())),
        false => Ok(told),
    }
}

fn is_of_superblock(edit: &Edit) -> bool {
    let (Edit::Flip(at, _) | Edit::Zero(at, _) | Edit::Copy(_, at, _) | Edit::Older(at, _)) = edit;
    *at < SUPERBLOCKS_BYTES
}

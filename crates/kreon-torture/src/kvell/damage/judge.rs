//! What a store says about damage, and whether it may.

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Device};
use kreon_sim::{SECTOR_BYTES, SimDevice};

use super::fixture::{Fixture, Known, device};
use crate::damage::hurt::{Edit, Hurt};
use crate::engines::{Durability, Engine};
use crate::kvell::store::Kvell;

/// Bytes of the superblocks.
const SUPERBLOCKS_BYTES: u64 = 4 * 4096;

/// How a store took damage, as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The opening said `Corruption`.
    Refused,
    /// A get and the verification said it.
    Told,
    /// The verification alone said it: no key depends on what was hit.
    Verified,
    /// A key has an earlier value: what was hit passes for a write that was lost or torn.
    Older,
    /// Everything is right.
    Harmless,
}

/// What the keys have.
#[derive(Default)]
struct Keys {
    told: usize,
    older: usize,
}

/// Opens a store on the hurt volume.
pub(super) fn reopened(fixture: &Fixture, hurt: &Hurt) -> Result<Outcome, String> {
    let device = device(hurt.apply(&fixture.image, &fixture.older));
    let is_told = |kind| match kind {
        ErrorKind::Corruption => true,
        // A superblock may have become that of a newer format.
        ErrorKind::InvalidArgument => hurt.0.iter().all(is_of_superblock),
        _ => false,
    };
    let store = match fixture.open(&device) {
        Ok(store) => store,
        Err(error) if is_told(error.kind()) => return Ok(Outcome::Refused),
        Err(error) => return Err(format!("the opening failed: {error}")),
    };
    let outcome = open_store(fixture, &store, hurt, true);
    let key = b"a key that is new";
    match store.change(key, Some(b"value"), Durability::Sync) {
        Err(error) if error.kind() != ErrorKind::Corruption => {
            Err(format!("a put failed: {error}"))
        }
        _ => store
            .close()
            .map_err(|error| error.to_string())
            .and(outcome),
    }
}

/// Hurts the volume under an open store, and heals it again.
pub(super) fn live(
    fixture: &Fixture,
    (store, device): (&Kvell, &SimDevice),
    hurt: &Hurt,
) -> Result<Outcome, String> {
    let image = device.image();
    let hurt_image = hurt.apply(&image, &fixture.older);
    let changed = hurt.changed(&image, &fixture.older);
    let write = |from: &kreon_sim::Image| {
        changed.iter().try_for_each(|range| {
            let start = range.start / SECTOR_BYTES as u64 * SECTOR_BYTES as u64;
            let end = range.end.next_multiple_of(SECTOR_BYTES as u64);
            let bytes = from.bytes(start, (end - start) as usize);
            let mut buffer = AlignedBuf::new(bytes.len());
            buffer.copy_from_slice(&bytes);
            device.write_at(start, &buffer)
        })
    };
    write(&hurt_image).map_err(|error| error.to_string())?;
    let outcome = open_store(fixture, store, hurt, false);
    write(&image).map_err(|error| error.to_string())?;
    outcome
}

/// Compares the keys of an open store, and verifies it.
fn open_store(
    fixture: &Fixture,
    store: &Kvell,
    hurt: &Hurt,
    is_reopened: bool,
) -> Result<Outcome, String> {
    let keys = compare(fixture, store, hurt, is_reopened)?;
    let report = store
        .store()
        .verify()
        .map_err(|error| format!("verify: {error}"))?;
    match (report.is_clean(), &keys) {
        (true, Keys { told: 1.., .. }) => {
            Err("a get says Corruption, a verification nothing".into())
        }
        (_, Keys { told: 1.., .. }) => Ok(Outcome::Told),
        (_, Keys { older: 1.., .. }) => Ok(Outcome::Older),
        (false, _) => Ok(Outcome::Verified),
        (true, _) => Ok(Outcome::Harmless),
    }
}

fn compare(
    fixture: &Fixture,
    store: &Kvell,
    hurt: &Hurt,
    is_reopened: bool,
) -> Result<Keys, String> {
    let mut keys = Keys::default();
    for (key, known) in &fixture.keys {
        let shown = key.escape_ascii();
        match store.get(key) {
            Ok(found) if found == known.value => {}
            Ok(found) if is_earlier(known, found.as_deref()) => {
                let is_torn = is_reopened && known.is_above_mark;
                if !is_torn && !hurt.0.iter().all(is_lost_write) {
                    return Err(format!(
                        "key {shown} has an earlier value, and nobody says so"
                    ));
                }
                keys.older += 1;
            }
            Ok(found) => {
                let bytes = found.map(|found| found.len());
                return Err(format!("key {shown} has {bytes:?} bytes that it never had"));
            }
            Err(error) if error.kind() == ErrorKind::Corruption => keys.told += 1,
            Err(error) => return Err(format!("key {shown}: {error}")),
        }
    }
    Ok(keys)
}

fn is_earlier(known: &Known, found: Option<&[u8]>) -> bool {
    found.is_none_or(|found| known.earlier.iter().any(|earlier| earlier == found))
}

fn is_lost_write(edit: &Edit) -> bool {
    matches!(edit, Edit::Zero(..) | Edit::Older(..))
}

fn is_of_superblock(edit: &Edit) -> bool {
    let (Edit::Flip(at, _) | Edit::Zero(at, _) | Edit::Copy(_, at, _) | Edit::Older(at, _)) = edit;
    *at < SUPERBLOCKS_BYTES
}

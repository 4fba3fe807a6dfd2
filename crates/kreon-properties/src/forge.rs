//! Pages that are valid, damaged, or neither.

use arbitrary::{Arbitrary, Result, Unstructured};
use kreon_base::{PAGE_BYTES, PageBytes, PageNo};
use kreon_format::StoreId;

use crate::seal;

/// How the bytes of a structure came about.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// As an encoder wrote it.
    Whole,
    /// One to three bits of it are flipped. CRC-32C notices every such damage of up to 2^31 bits.
    Flipped,
    /// Some bytes of it are different, and the checksum is right.
    Resealed,
    /// Anything, with the checksum of a structure of this kind.
    Sealed,
    /// Anything.
    Raw,
}

/// What a page is to be.
pub struct Kind {
    pub marks: [u8; 2],
    pub store: StoreId,
    pub page: PageNo,
}

/// Makes a page from the valid one in `bytes`; returns how. What it reads of `u` decides.
pub fn forge(u: &mut Unstructured<'_>, kind: &Kind, bytes: &mut PageBytes) -> Result<Origin> {
    let origin = Origin::arbitrary(u)?;
    match origin {
        Origin::Whole => {}
        Origin::Flipped => flip(u, bytes)?,
        Origin::Resealed => damage(u, bytes)?,
        Origin::Sealed | Origin::Raw => {
            fill(u, bytes)?;
            if origin == Origin::Sealed {
                seal::mark(bytes, kind.marks);
            }
        }
    }
    if matches!(origin, Origin::Resealed | Origin::Sealed) {
        seal::page(bytes, kind.store, kind.page);
    }
    Ok(origin)
}

/// Makes something of a valid structure, whose first `whole_bytes` mean something. What it reads of `u` decides; returns
/// how.
pub fn forge_structure(
    u: &mut Unstructured<'_>,
    bytes: &mut [u8],
    whole_bytes: usize,
    seal: impl Fn(&mut [u8]),
) -> Result<Origin> {
    let origin = Origin::arbitrary(u)?;
    match origin {
        Origin::Whole => {}
        Origin::Flipped => flip(u, &mut bytes[..whole_bytes])?,
        Origin::Resealed => damage(u, bytes)?,
        Origin::Sealed | Origin::Raw => {
            bytes.fill(0);
            let front = u.len().min(bytes.len());
            u.fill_buffer(&mut bytes[..front])?;
        }
    }
    if matches!(origin, Origin::Resealed | Origin::Sealed) {
        seal(bytes);
    }
    Ok(origin)
}

/// Flips one to three different bits.
pub fn flip(u: &mut Unstructured<'_>, bytes: &mut [u8]) -> Result<()> {
    let bits = bytes.len() * 8;
    let mut flipped = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let bit = u.choose_index(bits)?;
        if !flipped.contains(&bit) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            flipped.push(bit);
        }
    }
    Ok(())
}

/// Writes a few bytes over others, most of them near the front, where the fields are.
pub fn damage(u: &mut Unstructured<'_>, bytes: &mut [u8]) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    for _ in 0..u.int_in_range(1..=8)? {
        let reach = if u.ratio(2, 3)? { 160 } else { bytes.len() };
        let at = u.choose_index(reach.min(bytes.len()))?;
        bytes[at] = u.arbitrary()?;
    }
    Ok(())
}

/// Fills a page with what is left of the input: some at its front, the rest at its end.
fn fill(u: &mut Unstructured<'_>, bytes: &mut PageBytes) -> Result<()> {
    bytes.fill(0);
    let front_bytes = u.int_in_range(0..=u.len())?;
    let front = u.bytes(front_bytes.min(u.len()).min(PAGE_BYTES))?;
    bytes[..front.len()].copy_from_slice(front);
    let back = u.bytes(u.len().min(PAGE_BYTES))?;
    bytes[PAGE_BYTES - back.len()..].copy_from_slice(back);
    Ok(())
}

//! Traces of a store on a device without a whole superblock; the identity of the store does not matter.

use kreon_base::{Error, ErrorKind, PAGE_BYTES, PageNo, Result, SEGMENT_BYTES, SegmentId};
use kreon_device::Device;
use kreon_format::{
    CreationMark, GROUP_SEGMENTS, LogSegmentHeader, bitmap_page, group_of, trace_of,
};

use super::page_io::{blank_pages, is_there, read_pages};

/// The most segments that are sampled: all of 16 GiB, or as many evenly spread over a longer device.
const SAMPLED_SEGMENTS_MAX: u64 = 8192;

/// Pages that are read at once.
const ROUND_PAGES: usize = 64;

const OVERWRITE: &str = "`Options::format(true)` or `kreon put --format-store` would overwrite it";

/// The error that refuses to format a device which is not empty and has no whole superblock. `told`: what its
/// superblock slots say, if they bear marks of a store.
///
/// # Errors
/// `Io`.
pub fn refusal(device: &dyn Device, told: Option<String>) -> Result<Error> {
    let of_store = |what: String| {
        Error::corruption(format!(
            "{what}: a store was here, and is left untouched; {OVERWRITE}"
        ))
    };
    if let Some(told) = told {
        return Ok(of_store(told));
    }
    Ok(match find(device)? {
        Some((what, page)) => of_store(format!(
            "no superblock slot is whole, but {page} holds {what}"
        )),
        None => Error::new(
            ErrorKind::InvalidArgument,
            format!(
                "this is not a Kreon store: it is not empty, and nothing of Kreon was found in it; it was left \
                 untouched; {OVERWRITE}"
            ),
        ),
    })
}

/// The first trace of a store in a sample of the device.
fn find(device: &dyn Device) -> Result<Option<(&'static str, PageNo)>> {
    let mut found = None;
    for_pages(device, sampled(device), |page, bytes| {
        found = trace_of(bytes, page).map(|what| (what, page));
        found.is_none()
    })?;
    Ok(found)
}

/// Whether the creation of the store of `mark` was finished: only a finished store writes its log, or the second copy
/// of a bitmap block.
///
/// # Errors
/// `Io`.
pub fn is_finished(device: &dyn Device, mark: CreationMark) -> Result<bool> {
    let mut is_finished = false;
    for_pages(device, sampled(device), |page, bytes| {
        let segment = page.segment();
        let is_second_copy = page == bitmap_page(group_of(segment), 1);
        is_finished |= match is_second_copy {
            true => {
                kreon_format::BitmapBlock::decode(bytes, mark.store, group_of(segment), 1).is_ok()
            }
            false => LogSegmentHeader::decode(bytes, mark.store, segment).is_ok(),
        };
        !is_finished
    })?;
    Ok(is_finished)
}

/// Erases every trace of another store, so that no repair takes its content for this store's: discards all content
/// behind the first block, and overwrites the marks in segments and group heads that the device has kept.
///
/// # Errors
/// `Io`, `OutOfSpace`.
pub fn erase(device: &dyn Device) -> Result<()> {
    let block_bytes = u64::from(device.block_bytes()).max(PAGE_BYTES as u64);
    let end = device.len_bytes() / block_bytes * block_bytes;
    if let Some(len_bytes) = end.checked_sub(block_bytes).filter(|len| *len > 0)
        && let Err(error) = device.discard(block_bytes, len_bytes)
    {
        tracing::info!(%error, "what was on the device is not discarded");
    }
    // A device that discards reads as zeroes everywhere: a sample without traces speaks for the rest.
    if find(device)?.is_none() {
        return Ok(());
    }
    let mut traces = Vec::new();
    for_pages(device, landmarks(device, 1), |page, bytes| {
        traces.extend(trace_of(bytes, page).map(|_| page));
        true
    })?;
    let mut rounds = traces.chunks(ROUND_PAGES);
    rounds.try_for_each(|round| blank_pages(device, round.iter().copied()))
}

/// [`landmarks`] of at most [`SAMPLED_SEGMENTS_MAX`] segments.
fn sampled(device: &dyn Device) -> impl Iterator<Item = PageNo> {
    let segments = device.len_bytes().div_ceil(SEGMENT_BYTES);
    landmarks(
        device,
        segments.div_ceil(SAMPLED_SEGMENTS_MAX).max(1) as usize,
    )
}

/// The first page of every `step`th segment, and the bitmap blocks of as many groups.
fn landmarks(device: &dyn Device, step: usize) -> impl Iterator<Item = PageNo> {
    let segments = device.len_bytes().div_ceil(SEGMENT_BYTES);
    let segments = u32::try_from(segments).unwrap_or(u32::MAX);
    let firsts = (0..segments)
        .step_by(step)
        .map(|id| SegmentId(id).first_page());
    let groups = (0..segments.div_ceil(GROUP_SEGMENTS as u32)).step_by(step);
    let blocks = groups.flat_map(|group| [bitmap_page(group, 0), bitmap_page(group, 1)]);
    blocks.chain(firsts)
}

/// Shows pages that lie within the device as a whole, until `show` returns false.
fn for_pages(
    device: &dyn Device,
    pages: impl Iterator<Item = PageNo>,
    mut show: impl FnMut(PageNo, &kreon_base::PageBytes) -> bool,
) -> Result<()> {
    let mut pages = pages.filter(|page| is_there(device, *page));
    loop {
        let round: Vec<PageNo> = pages.by_ref().take(ROUND_PAGES).collect();
        if round.is_empty() {
            return Ok(());
        }
        let bytes = read_pages(device, &round)?;
        for (page, bytes) in round.iter().zip(bytes.pages()) {
            if !show(*page, bytes) {
                return Ok(());
            }
        }
    }
}

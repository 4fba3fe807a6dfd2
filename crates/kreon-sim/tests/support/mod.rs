//! Shorthand for the tests.
#![allow(dead_code, reason = "each test file uses a part")]

use kreon_device::{AlignedBuf, Device};
use kreon_sim::{Image, SimDevice, SimOptions};

pub const PAGE: u64 = 4096;
pub const SECTOR: u64 = 512;

/// An empty device of 1 MiB whose length is durable.
pub fn device() -> SimDevice {
    SimDevice::from_image(Image::new(1 << 20), SimOptions::default())
}

/// `len_bytes` times `byte`.
pub fn filled(len_bytes: u64, byte: u8) -> AlignedBuf {
    let mut buf = AlignedBuf::new(len_bytes as usize);
    buf.fill(byte);
    buf
}

/// Writes a page full of `byte`.
pub fn put(device: &SimDevice, page: u64, byte: u8) {
    device.write_at(page * PAGE, &filled(PAGE, byte)).unwrap();
}

/// The first byte of each of the first `pages` pages.
pub fn firsts(image: &Image, pages: u64) -> Vec<u8> {
    (0..pages)
        .map(|page| image.bytes(page * PAGE, 1)[0])
        .collect()
}

/// The first byte of each sector of a page.
pub fn sectors(image: &Image, page: u64) -> Vec<u8> {
    let first = |sector| image.bytes(page * PAGE + sector * SECTOR, 1)[0];
    (0..PAGE / SECTOR).map(first).collect()
}

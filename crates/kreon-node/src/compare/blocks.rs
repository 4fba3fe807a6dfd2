//! Digests of blocks of a file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use kreon_base::{Checksum, Error, Result};
use kreon_wire::limits::BLOCK_BYTES;

/// The digests of `count` blocks of a file from `offset` on; behind its end blocks are zero. Reads them from the device, not
/// from the page cache, which whoever has the volume open goes past.
///
/// # Errors
/// `Io`.
pub fn digests(path: &Path, offset: u64, count: u32) -> Result<Vec<u32>> {
    let bytes = read(path, offset, u64::from(count) * BLOCK_BYTES)?;
    let blocks = bytes.chunks(BLOCK_BYTES as usize);
    Ok(blocks.map(Checksum::of).collect())
}

/// Bytes of a file, zeroes behind its end.
pub(super) fn read(path: &Path, offset: u64, len_bytes: u64) -> Result<Vec<u8>> {
    let failed = |error| Error::io(format!("read {}", path.display()), error);
    let file = File::open(path).map_err(failed)?;
    // A wish: what is in the cache may be older than the device.
    let len = std::num::NonZeroU64::new(len_bytes);
    let _ = rustix::fs::fadvise(&file, offset, len, rustix::fs::Advice::DontNeed);
    let mut bytes = vec![0; usize::try_from(len_bytes).unwrap_or(0)];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + done as u64).map_err(failed)? {
            0 => break,
            count => done += count,
        }
    }
    let _ = rustix::fs::fadvise(&file, offset, len, rustix::fs::Advice::DontNeed);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_behind_the_end_of_a_file_are_zero() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, [7; 5000]).unwrap();
        let found = digests(&path, 0, 3).unwrap();
        let mut second = [0; 4096];
        second[..904].fill(7);
        let blocks = [[7; 4096], second, [0; 4096]];
        assert_eq!(found, blocks.map(|block| Checksum::of(&block)));
        assert_eq!(digests(&path, 4096, 1).unwrap(), found[1..2]);
    }
}

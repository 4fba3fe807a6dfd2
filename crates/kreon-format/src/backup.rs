//! The manifest of a backup: what state it has, and where each page of it stands in the data files of its folder.

use kreon_base::{
    Checksum, Epoch, Error, Lsn, PAGE_BYTES, PageBytes, PageNo, Result, SEGMENT_PAGES, SegmentId,
};

use crate::bytes::{array_at, put, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::sealed::{page_checksum, stored_checksum};
use crate::{PAGE_POINTER_BYTES, PagePointer, StoreId, Superblock};

const MAGIC: &[u8; 8] = b"KreonBak";

/// The version of manifests, by itself: a backup of a store of any format has it.
const VERSION: u32 = 1;

const VERSION_AT: usize = 8;
const CHECKSUM_AT: usize = 12;
const STORE_AT: usize = 16;
const NUMBER_AT: usize = 24;
const EPOCH_AT: usize = 32;
const LOG_END_AT: usize = 40;
const PAGES_AT: usize = 48;
const PIECES_AT: usize = 56;
const TIME_AT: usize = 64;
const BODY_CHECKSUM_AT: usize = 72;

/// Header, and the superblock.
const FRONT_BYTES: usize = 2 * PAGE_BYTES;

/// Bytes of a [`BackupPage`].
pub const BACKUP_PAGE_BYTES: usize = PAGE_POINTER_BYTES + 12;

/// Bytes of a [`BackupPiece`].
pub const BACKUP_PIECE_BYTES: usize = 32;

/// A place in the data files: the backup that wrote the file, and the page in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BackupPlace {
    /// Number of the data file, from 1 on.
    pub file: u32,
    /// Number of the page in it, from 0 on.
    pub page: u64,
}

/// A page of trees, catalogue or bitmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupPage {
    /// Which, and what its content is.
    pub pointer: PagePointer,
    /// Where it stands.
    pub place: BackupPlace,
}

/// Consecutive pages of a log segment. Pieces of one segment may overlap: the later one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupPiece {
    /// The segment.
    pub segment: SegmentId,
    /// Its sequence.
    pub sequence: u64,
    /// The first page, within the segment.
    pub first: u16,
    /// Number of pages, 1 to [`SEGMENT_PAGES`].
    pub count: u16,
    /// CRC-32C of the pages.
    pub checksum: u32,
    /// Where they stand, one behind the other.
    pub place: BackupPlace,
}

/// What one backup has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupManifest {
    /// Number of the backup, from 1 on; later ones have higher numbers.
    pub number: u32,
    /// Milliseconds since 1970 when it began.
    pub time_ms: u64,
    /// The superblock of the state.
    pub superblock: Superblock,
    /// Every write before is in the state, none behind it.
    pub log_end: Lsn,
    /// All pages of the state but those of logs, ascending.
    pub pages: Vec<BackupPage>,
    /// The pages of logs; in the order in which they were written.
    pub pieces: Vec<BackupPiece>,
}

impl BackupManifest {
    /// The bytes of the file: whole pages.
    pub fn encode(&self) -> Vec<u8> {
        let pages = self.pages.len() * BACKUP_PAGE_BYTES;
        let body = pages + self.pieces.len() * BACKUP_PIECE_BYTES;
        let mut bytes = vec![0; (FRONT_BYTES + body).next_multiple_of(PAGE_BYTES)];
        put(&mut bytes, PAGE_BYTES, &self.superblock.encode(0)[..]);
        let mut at = FRONT_BYTES;
        for page in &self.pages {
            put(&mut bytes, at, &page.pointer.encode());
            put_u32(&mut bytes, at + 16, page.place.file);
            put_u64(&mut bytes, at + 20, page.place.page);
            at += BACKUP_PAGE_BYTES;
        }
        for piece in &self.pieces {
            put_u32(&mut bytes, at, piece.segment.0);
            put(&mut bytes, at + 4, &piece.first.to_le_bytes());
            put(&mut bytes, at + 6, &piece.count.to_le_bytes());
            put_u64(&mut bytes, at + 8, piece.sequence);
            put_u32(&mut bytes, at + 16, piece.checksum);
            put_u32(&mut bytes, at + 20, piece.place.file);
            put_u64(&mut bytes, at + 24, piece.place.page);
            at += BACKUP_PIECE_BYTES;
        }
        let body = Checksum::of(bytes.get(PAGE_BYTES..).unwrap_or_default());
        put(&mut bytes, 0, MAGIC);
        put_u32(&mut bytes, VERSION_AT, VERSION);
        put_u64(&mut bytes, STORE_AT, self.superblock.store.0);
        put_u64(&mut bytes, NUMBER_AT, u64::from(self.number));
        put_u64(&mut bytes, EPOCH_AT, self.superblock.epoch.0);
        put_u64(&mut bytes, LOG_END_AT, self.log_end.0);
        put_u64(&mut bytes, PAGES_AT, self.pages.len() as u64);
        put_u64(&mut bytes, PIECES_AT, self.pieces.len() as u64);
        put_u64(&mut bytes, TIME_AT, self.time_ms);
        put_u32(&mut bytes, BODY_CHECKSUM_AT, body);
        let checksum = Checksum::of(bytes.get(..PAGE_BYTES).unwrap_or_default());
        put_u32(&mut bytes, CHECKSUM_AT, checksum);
        bytes
    }

    /// Decodes and verifies a file.
    ///
    /// # Errors
    /// `Corruption`; `InvalidArgument` for a newer version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let header: [u8; PAGE_BYTES] = array_at(bytes, 0).ok_or_else(|| wrong("cut off"))?;
        let mut unsealed = header;
        put_u32(&mut unsealed, CHECKSUM_AT, 0);
        if header.first_chunk() != Some(MAGIC) {
            return Err(wrong("it is none"));
        }
        if Checksum::of(&unsealed) != u32_at(&header, CHECKSUM_AT) {
            return Err(wrong("the checksum of its header does not match"));
        }
        match u32_at(&header, VERSION_AT) {
            VERSION => {}
            version => {
                return Err(Error::invalid(format!(
                    "a backup of a newer version, {version}; this build reads {VERSION}"
                )));
            }
        }
        let body = bytes.get(PAGE_BYTES..).unwrap_or_default();
        if Checksum::of(body) != u32_at(&header, BODY_CHECKSUM_AT) {
            return Err(wrong("its checksum does not match"));
        }
        let superblock: PageBytes = array_at(body, 0).ok_or_else(|| wrong("cut off"))?;
        let superblock = Superblock::decode(&superblock, 0)?;
        let rest = bytes.get(FRONT_BYTES..).unwrap_or_default();
        let (pages, pieces) = (u64_at(&header, PAGES_AT), u64_at(&header, PIECES_AT));
        let (pages, rest) = records::<BACKUP_PAGE_BYTES>(rest, pages)?;
        let (pieces, _) = records::<BACKUP_PIECE_BYTES>(rest, pieces)?;
        let number = u32::try_from(u64_at(&header, NUMBER_AT));
        let manifest = Self {
            number: number.map_err(|_| wrong("its number is too large"))?,
            time_ms: u64_at(&header, TIME_AT),
            superblock,
            log_end: Lsn(u64_at(&header, LOG_END_AT)),
            pages: pages.iter().map(page).collect(),
            pieces: pieces.iter().map(piece).collect(),
        };
        manifest.check(&header)?;
        Ok(manifest)
    }

    /// What a restore relies on.
    fn check(&self, header: &PageBytes) -> Result<()> {
        let ascending = |two: &[BackupPage]| matches!(two, [one, other] if one.pointer.page < other.pointer.page);
        let is_sound = |piece: &BackupPiece| {
            let end = u64::from(piece.first) + u64::from(piece.count);
            piece.count > 0 && end <= SEGMENT_PAGES
        };
        let is_whole = self.superblock.store == StoreId(u64_at(header, STORE_AT))
            && self.superblock.epoch == Epoch(u64_at(header, EPOCH_AT))
            && self.pages.windows(2).all(ascending)
            && self.pieces.iter().all(is_sound);
        match is_whole {
            true => Ok(()),
            false => Err(wrong("its parts do not fit each other")),
        }
    }
}

/// The first `count` records of `N` bytes, and what is behind them.
#[allow(clippy::type_complexity, reason = "two slices")]
fn records<const N: usize>(bytes: &[u8], count: u64) -> Result<(&[[u8; N]], &[u8])> {
    let len = usize::try_from(count)
        .ok()
        .and_then(|count| count.checked_mul(N));
    let parts = len.and_then(|len| bytes.split_at_checked(len));
    let (records, rest) = parts.ok_or_else(|| wrong("cut off"))?;
    Ok((records.as_chunks::<N>().0, rest))
}

fn page(bytes: &[u8; BACKUP_PAGE_BYTES]) -> BackupPage {
    BackupPage {
        pointer: PagePointer::decode(&array_at(bytes, 0).unwrap_or_default()),
        place: BackupPlace {
            file: u32_at(bytes, 16),
            page: u64_at(bytes, 20),
        },
    }
}

fn piece(bytes: &[u8; BACKUP_PIECE_BYTES]) -> BackupPiece {
    BackupPiece {
        segment: SegmentId(u32_at(bytes, 0)),
        first: u16_at(bytes, 4),
        count: u16_at(bytes, 6),
        sequence: u64_at(bytes, 8),
        checksum: u32_at(bytes, 16),
        place: BackupPlace {
            file: u32_at(bytes, 20),
            page: u64_at(bytes, 24),
        },
    }
}

/// Checks that `bytes` are the page that `pointer` names: of a store, or of an image of its L0. Neither kind nor structure
/// is looked at, so that what was verified once can be moved at the speed of the checksum.
///
/// # Errors
/// `Corruption`.
pub fn verify_pointed(bytes: &PageBytes, store: StoreId, pointer: &PagePointer) -> Result<()> {
    let PageNo(page) = pointer.page;
    let of = |store| page_checksum(bytes, store, pointer.page) == pointer.checksum;
    if stored_checksum(bytes) == pointer.checksum && (of(store) || of(store.of_image())) {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "page {page}: its bytes are not those that the pointer names"
    )))
}

#[cold]
fn wrong(what: &str) -> Error {
    Error::corruption(format!("manifest of a backup: {what}"))
}

#[cfg(test)]
mod tests {
    use kreon_base::Incarnation;

    use super::*;

    fn manifest() -> BackupManifest {
        let pointer = |page| PagePointer {
            page: PageNo(page),
            epoch: Epoch(0x0506),
            checksum: 0x0708_090a,
        };
        BackupManifest {
            number: 3,
            time_ms: 0x0102_0304,
            superblock: Superblock {
                store: StoreId(0x1112_1314),
                epoch: Epoch(9),
                incarnation: Incarnation(2),
                segments: 44,
                catalogue: pointer(70),
                catalogue_bytes: 200,
            },
            log_end: Lsn(0x2122_2324),
            pages: [70, 71]
                .map(|page| BackupPage {
                    pointer: pointer(page),
                    place: BackupPlace {
                        file: 2,
                        page: page + 0x1000,
                    },
                })
                .to_vec(),
            pieces: vec![BackupPiece {
                segment: SegmentId(5),
                sequence: 0x3132,
                first: 1,
                count: 511,
                checksum: 0x4142_4344,
                place: BackupPlace { file: 3, page: 7 },
            }],
        }
    }

    #[test]
    fn a_manifest_has_these_bytes() {
        let bytes = manifest().encode();
        assert_eq!(bytes.len(), 3 * PAGE_BYTES);
        assert_eq!(bytes.get(..12), Some(&b"KreonBak\x01\0\0\0"[..]));
        let words = |from: usize, to| bytes.get(from..to).unwrap();
        assert_eq!(words(16, 20), [0x14, 0x13, 0x12, 0x11]);
        assert_eq!(words(24, 33), [3, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(words(40, 44), [0x24, 0x23, 0x22, 0x21]);
        assert_eq!((bytes[48], bytes[56]), (2, 1));
        assert_eq!(words(64, 68), [4, 3, 2, 1]);
        let page = words(FRONT_BYTES, FRONT_BYTES + BACKUP_PAGE_BYTES);
        let expected = [
            70, 0, 0, 0, 0, 0, 6, 5, 0, 0, 0, 0, 10, 9, 8, 7, 2, 0, 0, 0, 70, 16, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(page, expected);
        let at = FRONT_BYTES + 2 * BACKUP_PAGE_BYTES;
        let expected = [
            5, 0, 0, 0, 1, 0, 255, 1, 0x32, 0x31, 0, 0, 0, 0, 0, 0, 0x44, 0x43, 0x42, 0x41, 3, 0,
            0, 0, 7, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(words(at, at + BACKUP_PIECE_BYTES), expected);
    }

    #[test]
    fn a_manifest_decodes_to_itself_and_no_changed_byte_passes() {
        let bytes = manifest().encode();
        assert_eq!(BackupManifest::decode(&bytes).unwrap(), manifest());
        for at in (0..bytes.len()).step_by(5).chain([bytes.len() - 1]) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(BackupManifest::decode(&damaged).is_err(), "byte {at}");
        }
        for len in [0, 8, PAGE_BYTES, 2 * PAGE_BYTES] {
            assert!(
                BackupManifest::decode(&bytes[..len]).is_err(),
                "{len} bytes"
            );
        }
    }
}

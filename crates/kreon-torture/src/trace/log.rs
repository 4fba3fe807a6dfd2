//! The log of writes that `dm-log-writes` and the `blklogwrites` driver of QEMU make.
//!
//! All numbers are little-endian. Sector 0 of the log is its superblock: magic, version, number of
//! entries (8 bytes each), sector size (4 bytes). Each entry is one sector: first sector and number of
//! sectors on the device, flags, length of a mark's text (8 bytes each), behind it the text of a mark.
//! Then the sectors that were written follow; a discard has none.

use std::fmt;
use std::ops::Range;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const SUPERBLOCK_BYTES: usize = 28;
const ENTRY_BYTES: usize = 32;

const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;

/// What was done to the device. The order is that in which the requests were completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A write.
    Write {
        /// Where, in bytes.
        offset: u64,
        /// Where its bytes stand in the log.
        bytes: Range<usize>,
        /// It was durable when it was completed.
        is_forced: bool,
    },
    /// A discard.
    Discard {
        /// Where, in bytes.
        offset: u64,
        /// How much, in bytes.
        len_bytes: u64,
    },
    /// A flush.
    Flush,
    /// A mark from outside.
    Mark(Vec<u8>),
}

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogError {
    /// It ends within its superblock, or in an entry that is counted.
    CutShort {
        /// Which entry; `None`: the superblock.
        entry: Option<u64>,
    },
    /// It is not such a log.
    Magic(u64),
    /// Another version.
    Version(u64),
    /// A sector size that is no power of two from 512 to 64 KiB.
    SectorBytes(u32),
    /// An entry that nothing writes.
    Entry {
        /// Which, from 0.
        entry: u64,
        /// What is wrong.
        what: &'static str,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutShort { entry: None } => write!(f, "the log has no superblock"),
            Self::CutShort { entry: Some(entry) } => write!(f, "the log ends in entry {entry}"),
            Self::Magic(magic) => write!(f, "no log of writes: it begins with {magic:#x}"),
            Self::Version(version) => write!(f, "a log of version {version}, not {VERSION}"),
            Self::SectorBytes(bytes) => write!(f, "a log with sectors of {bytes} bytes"),
            Self::Entry { entry, what } => write!(f, "entry {entry} of the log: {what}"),
        }
    }
}

impl std::error::Error for LogError {}

/// Reads the entries of a log. Those behind the last flush are not counted in its superblock and so
/// are not read.
///
/// # Errors
/// If `log` is not a whole log.
pub fn parse(log: &[u8]) -> Result<Vec<Entry>, LogError> {
    let superblock = log.get(..SUPERBLOCK_BYTES);
    let superblock = superblock.ok_or(LogError::CutShort { entry: None })?;
    match (word(superblock, 0), word(superblock, 1)) {
        (MAGIC, VERSION) => {}
        (MAGIC, version) => return Err(LogError::Version(version)),
        (magic, _) => return Err(LogError::Magic(magic)),
    }
    let count = word(superblock, 2);
    // The upper half lies behind the superblock's end and is not read.
    let sector_bytes = word(superblock, 3) as u32;
    if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
        return Err(LogError::SectorBytes(sector_bytes));
    }
    let mut cursor = Cursor {
        log,
        sector_bytes: u64::from(sector_bytes),
        at: u64::from(sector_bytes),
        entry: 0,
    };
    let mut entries = Vec::new();
    while cursor.entry < count {
        entries.push(cursor.next()?);
        cursor.entry += 1;
    }
    Ok(entries)
}

/// Word number `index` of `bytes`; zeroes behind their end.
fn word(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.iter().skip(index * 8)) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}

struct Cursor<'a> {
    log: &'a [u8],
    sector_bytes: u64,
    /// Where the next entry begins.
    at: u64,
    /// Its number.
    entry: u64,
}

impl Cursor<'_> {
    fn next(&mut self) -> Result<Entry, LogError> {
        let head = self.take(self.sector_bytes)?;
        let head = self.log.get(head).unwrap_or_default();
        let (sector, sectors, flags, text_bytes) =
            (word(head, 0), word(head, 1), word(head, 2), word(head, 3));
        if flags & !(FLUSH | FUA | DISCARD | MARK) != 0 {
            return Err(self.wrong("unknown flags"));
        }
        let bytes_of = |sectors: u64| sectors.checked_mul(self.sector_bytes);
        let (Some(offset), Some(len_bytes)) = (bytes_of(sector), bytes_of(sectors)) else {
            return Err(self.wrong("it lies beyond every device"));
        };
        if offset.checked_add(len_bytes).is_none() {
            return Err(self.wrong("it ends beyond every device"));
        }
        if flags & MARK != 0 {
            let text_bytes = usize::try_from(text_bytes).ok();
            let text = text_bytes
                .and_then(|n| head.get(ENTRY_BYTES..)?.get(..n))
                .ok_or(self.wrong("a mark longer than its sector"))?;
            return Ok(Entry::Mark(text.to_vec()));
        }
        if flags & DISCARD != 0 {
            return Ok(Entry::Discard { offset, len_bytes });
        }
        if flags & FLUSH != 0 {
            return match sectors {
                0 => Ok(Entry::Flush),
                // What such a flush covers depends on who wrote the log.
                _ => Err(self.wrong("a flush that writes, too")),
            };
        }
        Ok(Entry::Write {
            offset,
            bytes: self.take(len_bytes)?,
            is_forced: flags & FUA != 0,
        })
    }

    /// The next `len_bytes` of the log.
    fn take(&mut self, len_bytes: u64) -> Result<Range<usize>, LogError> {
        let start = self.at;
        let end = start.checked_add(len_bytes);
        let end = end.filter(|&end| end <= self.log.len() as u64);
        self.at = end.ok_or(LogError::CutShort {
            entry: Some(self.entry),
        })?;
        Ok(start as usize..self.at as usize)
    }

    fn wrong(&self, what: &'static str) -> LogError {
        LogError::Entry {
            entry: self.entry,
            what,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: usize = 512;

    fn log(count: u64, entries: &[([u64; 4], &[u8])]) -> Vec<u8> {
        let mut log = Vec::new();
        for number in [MAGIC, VERSION, count] {
            log.extend_from_slice(&number.to_le_bytes());
        }
        log.extend_from_slice(&(SECTOR as u32).to_le_bytes());
        log.resize(SECTOR, 0);
        for (numbers, data) in entries {
            for number in numbers {
                log.extend_from_slice(&number.to_le_bytes());
            }
            if numbers[2] & MARK != 0 {
                log.extend_from_slice(data);
            }
            log.resize(log.len().next_multiple_of(SECTOR), 0);
            if numbers[2] == 0 || numbers[2] == FUA {
                log.extend_from_slice(data);
            }
        }
        log
    }

    fn example() -> Vec<u8> {
        log(
            5,
            &[
                ([8, 2, 0, 0], &[7; 2 * SECTOR]),
                ([0, 0, FLUSH, 0], &[]),
                ([16, 4800, DISCARD, 0], &[]),
                ([0, 0, MARK, 5], b"label"),
                ([3, 1, FUA, 0], &[9; SECTOR]),
            ],
        )
    }

    #[test]
    fn every_kind_of_entry_is_read() {
        let bytes = example();
        let entries = parse(&bytes).unwrap();
        let expected = [
            Entry::Write {
                offset: 4096,
                bytes: 1024..2048,
                is_forced: false,
            },
            Entry::Flush,
            Entry::Discard {
                offset: 8192,
                len_bytes: 4800 * 512,
            },
            Entry::Mark(b"label".to_vec()),
            Entry::Write {
                offset: 1536,
                bytes: 4096..4608,
                is_forced: true,
            },
        ];
        assert_eq!(entries, expected);
        assert!(bytes[1024..2048].iter().all(|&b| b == 7));
        assert!(bytes[4096..4608].iter().all(|&b| b == 9));
    }

    #[test]
    fn a_log_that_ends_in_any_byte_is_refused() {
        let whole = example();
        for len_bytes in 0..whole.len() {
            let cut = parse(&whole[..len_bytes]);
            assert!(
                matches!(cut, Err(LogError::CutShort { .. })),
                "{len_bytes}: {cut:?}"
            );
        }
    }

    #[test]
    fn entries_that_are_not_counted_are_not_read() {
        let mut bytes = log(1, &[([0, 0, FLUSH, 0], &[]), ([0, 0, u64::MAX, 0], &[])]);
        assert_eq!(parse(&bytes), Ok(vec![Entry::Flush]));
        bytes[16] = 2;
        let what = "unknown flags";
        assert_eq!(parse(&bytes), Err(LogError::Entry { entry: 1, what }));
    }

    #[test]
    fn foreign_superblocks_are_refused() {
        let change = |at: usize, to: u8| {
            let mut bytes = example();
            bytes[at] = to;
            parse(&bytes)
        };
        assert!(matches!(change(0, 0), Err(LogError::Magic(_))));
        assert_eq!(change(8, 2), Err(LogError::Version(2)));
        assert_eq!(change(25, 3), Err(LogError::SectorBytes(768)));
        assert_eq!(change(25, 0), Err(LogError::SectorBytes(0)));
        assert!(matches!(change(24, 1), Err(LogError::SectorBytes(513))));
    }

    #[test]
    fn impossible_entries_are_refused_and_never_panic() {
        for (numbers, is_cut) in [
            ([u64::MAX, 1, 0, 0], false),
            ([0, u64::MAX, 0, 0], false),
            ([u64::MAX / 512, 1, DISCARD, 0], false),
            ([0, 1, FLUSH, 0], false),
            ([0, 0, MARK, 481], false),
            ([0, 0, MARK, u64::MAX], false),
            ([0, 0, 16, 0], false),
            ([0, u64::MAX / 512, 0, 0], true),
            ([0, 1, 0, 0], true),
        ] {
            let outcome = parse(&log(1, &[(numbers, &[])]));
            match is_cut {
                true => assert_eq!(outcome, Err(LogError::CutShort { entry: Some(0) })),
                false => assert!(matches!(outcome, Err(LogError::Entry { entry: 0, .. }))),
            }
        }
    }

    #[test]
    fn a_flipped_bit_never_panics() {
        let whole = example();
        for at in (0..SUPERBLOCK_BYTES).chain(SECTOR..SECTOR + ENTRY_BYTES) {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                // Some flips only change where or what was written.
                drop(parse(&bytes));
            }
        }
    }
}

//! Keys that divide the rows of a file into parts of about the same number: where a new table is split.

use std::path::Path;

use super::input::Input;
use super::reading::Reading;
use super::rows::Rows;
use crate::encoding::Encoding;
use crate::failure::Result;
use crate::interrupt::Interrupt;

/// Keys that are kept. With so many the parts differ by a few hundredths.
const KEPT_MAX: usize = 10_000;

/// Up to `parts - 1` keys of up to `key_bytes_max` bytes, ascending: the first keys of all parts but the first. Fewer if
/// the file has too few different keys. Reads all of the file.
pub fn quantiles(
    (file, reading): (&Path, &Reading),
    encodings: [Encoding; 2],
    interrupt: &Interrupt,
    parts: usize,
    key_bytes_max: usize,
) -> Result<Vec<Vec<u8>>> {
    let format = reading.format(file)?;
    let input = Input::open(file, false, interrupt)?;
    let name = file.display();
    let reader = reading
        .reader(input.source, format, encodings)
        .map_err(|error| error.within(&name))?;
    let mut rows = Rows::new(file, reader, interrupt);
    rows.skip_bad = reading.skip_bad;
    let mut kept = Kept::default();
    while let Some(pair) = rows.next()? {
        kept.offer(&pair.key);
    }
    input.progress.finish_and_clear();
    Ok(split(kept.keys, parts, key_bytes_max))
}

/// A sample of keys in which each has the same chance to be (Vitter's algorithm R).
#[derive(Default)]
struct Kept {
    keys: Vec<Vec<u8>>,
    offered: u64,
}

impl Kept {
    fn offer(&mut self, key: &[u8]) {
        self.offered += 1;
        if self.keys.len() < KEPT_MAX {
            return self.keys.push(key.to_vec());
        }
        let at = usize::try_from(mixed(self.offered) % self.offered).unwrap_or(usize::MAX);
        if let Some(kept) = self.keys.get_mut(at) {
            kept.clear();
            kept.extend_from_slice(key);
        }
    }
}

/// The same file gives the same splits: chance of no quality that matters here (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn split(mut keys: Vec<Vec<u8>>, parts: usize, key_bytes_max: usize) -> Vec<Vec<u8>> {
    keys.sort_unstable();
    let mut splits: Vec<Vec<u8>> = Vec::new();
    for part in 1..parts {
        let at = part.saturating_mul(keys.len()) / parts;
        let Some([before, key]) = at.checked_sub(1).and_then(|from| keys.get(from..=at)) else {
            continue;
        };
        // The shortest that has the key and not the one before it: what clients keep in memory is small.
        let common = before.iter().zip(key).take_while(|(a, b)| a == b).count();
        let mut first = key.clone();
        first.truncate((common + 1).min(key_bytes_max));
        let is_above = splits.last().is_none_or(|last| *last < first);
        if is_above && !first.is_empty() {
            splits.push(first);
        }
    }
    splits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_divide_a_large_file_about_evenly_and_are_short() {
        let mut kept = Kept::default();
        // Ascending, as an export is: chance has to reach all of it.
        for number in 0..100_000 {
            kept.offer(format!("place/{number:06}/with a name").as_bytes());
        }
        assert_eq!(kept.keys.len(), KEPT_MAX);
        let splits = split(kept.keys, 4, 256);
        assert_eq!(splits.len(), 3);
        for (split, ideal) in splits.iter().zip([25_000_f64, 50_000.0, 75_000.0]) {
            let text = String::from_utf8(split.clone()).unwrap();
            let digits = text.trim_start_matches("place/");
            let number: f64 = format!("{digits:0<6}").parse().unwrap();
            assert!((number - ideal).abs() < 2_000.0, "{text}");
            assert!(text.len() <= "place/".len() + 6, "{text}");
        }
    }

    #[test]
    fn few_keys_and_long_ones_give_fewer_splits_that_still_ascend() {
        let keys = |keys: &[&str]| keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        assert_eq!(split(keys(&[]), 3, 256), Vec::<Vec<u8>>::new());
        assert_eq!(split(keys(&["a"]), 3, 256), Vec::<Vec<u8>>::new());
        assert_eq!(
            split(keys(&["b", "a", "a"]), 3, 256),
            [b"a".to_vec(), b"b".to_vec()][..].to_vec()
        );
        assert_eq!(
            split(keys(&["aaaa1", "aaaa2", "aaaa3"]), 3, 4),
            [b"aaaa".to_vec()]
        );
    }
}

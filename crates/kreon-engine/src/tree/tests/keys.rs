//! Families of keys.

use super::random::Random;

/// What kind of keys a random test uses.
#[derive(Clone, Copy, Debug)]
pub enum Family {
    /// `user` and 8 digits.
    User,
    /// 0 to 6 bytes of 0x00, `a` and 0xff: empty keys, prefixes of each other.
    Sparse,
    /// 2000 equal bytes, then one or two more: told apart in the log only.
    SharedPrefix,
    /// 1020 equal bytes, then 0 to 10: around the border between short and long.
    Border,
    /// Up to 64 KiB; half of them differ in the last bytes only.
    Huge,
    /// A bit of everything.
    Mixed,
}

pub const FAMILIES: [Family; 6] = [
    Family::User,
    Family::Sparse,
    Family::SharedPrefix,
    Family::Border,
    Family::Huge,
    Family::Mixed,
];

impl Family {
    /// A pool of about `count` different keys, sorted.
    pub fn pool(self, random: &mut Random, count: usize) -> Vec<Vec<u8>> {
        let mut keys: Vec<_> = (0..count).map(|_| self.draw(random, count)).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    fn draw(self, random: &mut Random, count: usize) -> Vec<u8> {
        match self {
            Self::User => format!("user{:08}", random.below(count * 4)).into_bytes(),
            Self::Sparse => sparse(random, 7),
            Self::SharedPrefix => {
                let tail = [random.below(40) as u8, random.below(256) as u8];
                [&[b'p'; 2000][..], &tail[..1 + random.below(2)]].concat()
            }
            Self::Border => [&[b'b'; 1020][..], &sparse(random, 11)].concat(),
            Self::Huge => {
                let mut key = vec![b'h'; 60_000 + random.below(5537)];
                if random.one_in(2) {
                    key.truncate(65_534);
                    key[..2].copy_from_slice(&[b'i', random.below(256) as u8]);
                }
                key.extend_from_slice(&[random.below(256) as u8, random.below(256) as u8]);
                key.truncate(65_536);
                key
            }
            Self::Mixed => {
                // Few of the huge ones: they make the model slow.
                let family = match random.below(40) {
                    0 => Self::Huge,
                    1..10 => Self::User,
                    10..20 => Self::Sparse,
                    20..30 => Self::SharedPrefix,
                    _ => Self::Border,
                };
                family.draw(random, count)
            }
        }
    }
}

fn sparse(random: &mut Random, lengths: usize) -> Vec<u8> {
    let length = random.below(lengths);
    (0..length)
        .map(|_| *random.pick(&[0x00, b'a', 0xff]))
        .collect()
}

//! What is done to the bytes of a device, in a form that can be written down and done again.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use kreon_sim::Image;

/// One change of bytes; places and lengths in bytes of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The byte at the place is XORed with the mask.
    Flip(u64, u8),
    /// So many bytes from the place on become zero.
    Zero(u64, u64),
    /// So many bytes that stand at the first place stand at the second, too: a misdirected write or
    /// read.
    Copy(u64, u64, u64),
    /// So many bytes at the place are what they were some checkpoints ago: a lost write.
    Older(u64, u64),
}

/// Changes of bytes that befall a device together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hurt(pub Vec<Edit>);

impl Hurt {
    /// One change.
    pub fn one(edit: Edit) -> Self {
        Self(vec![edit])
    }

    /// A device that holds `image`, hurt.
    pub fn apply(&self, image: &Image, older: &Image) -> Image {
        let mut hurt = image.clone();
        for edit in &self.0 {
            let (at, bytes) = edit.bytes(image, older);
            hurt.write(at, &bytes);
        }
        hurt
    }

    /// The ranges of bytes that are not what they were.
    pub fn changed(&self, image: &Image, older: &Image) -> Vec<Range<u64>> {
        let mut changed = Vec::new();
        for edit in &self.0 {
            let (at, bytes) = edit.bytes(image, older);
            let was = image.bytes(at, bytes.len());
            let mut run: Option<Range<u64>> = None;
            for (place, (new, old)) in (at..).zip(bytes.iter().zip(&was)) {
                match (&mut run, new == old) {
                    (Some(range), false) => range.end = place + 1,
                    (None, false) => run = Some(place..place + 1),
                    (Some(_), true) => changed.extend(run.take()),
                    (None, true) => {}
                }
            }
            changed.extend(run);
        }
        changed
    }
}

impl Edit {
    /// Where, and what stands there afterwards.
    fn bytes(&self, image: &Image, older: &Image) -> (u64, Vec<u8>) {
        let read = |from: &Image, at, len_bytes: u64| from.bytes(at, len_bytes as usize);
        match *self {
            Self::Flip(at, mask) => (at, vec![read(image, at, 1)[0] ^ mask]),
            Self::Zero(at, len_bytes) => (at, vec![0; len_bytes as usize]),
            Self::Copy(from, at, len_bytes) => (at, read(image, from, len_bytes)),
            Self::Older(at, len_bytes) => (at, read(older, at, len_bytes)),
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flip(at, mask) => write!(f, "flip:{at}:{mask}"),
            Self::Zero(at, len_bytes) => write!(f, "zero:{at}:{len_bytes}"),
            Self::Copy(from, at, len_bytes) => write!(f, "copy:{from}:{at}:{len_bytes}"),
            Self::Older(at, len_bytes) => write!(f, "older:{at}:{len_bytes}"),
        }
    }
}

impl fmt::Display for Hurt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, edit) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{edit}")?;
        }
        Ok(())
    }
}

impl FromStr for Edit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no change of bytes");
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let numbers: Vec<u64> = words
            .map(|word| word.parse().map_err(|_| wrong()))
            .collect::<Result<_, _>>()?;
        match (name, numbers.as_slice()) {
            ("flip", [at, mask]) => Ok(Self::Flip(*at, *mask as u8)),
            ("zero", [at, len_bytes]) => Ok(Self::Zero(*at, *len_bytes)),
            ("copy", [from, at, len_bytes]) => Ok(Self::Copy(*from, *at, *len_bytes)),
            ("older", [at, len_bytes]) => Ok(Self::Older(*at, *len_bytes)),
            _ => Err(wrong()),
        }
    }
}

impl FromStr for Hurt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',')
            .map(Edit::from_str)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_reads_back() {
        let hurt = Hurt(vec![
            Edit::Flip(4096, 255),
            Edit::Zero(512, 512),
            Edit::Copy(0, 4096, 512),
            Edit::Older(8192, 4096),
        ]);
        assert_eq!(hurt.to_string().parse(), Ok(hurt));
        assert!("flip:1".parse::<Hurt>().is_err());
    }

    #[test]
    fn only_bytes_that_differ_count_as_changed() {
        let mut image = Image::new(8192);
        image.write(100, &[1, 2, 0, 3]);
        let older = Image::new(8192);
        let changed = |edit| Hurt::one(edit).changed(&image, &older);
        assert_eq!(changed(Edit::Zero(0, 512)), [100..102, 103..104]);
        assert_eq!(changed(Edit::Older(4096, 512)), []);
        assert_eq!(changed(Edit::Flip(7, 1)), vec![7..8]);
        let hurt = Hurt::one(Edit::Flip(100, 3)).apply(&image, &older);
        assert_eq!(hurt.bytes(100, 2), [2, 2]);
    }
}

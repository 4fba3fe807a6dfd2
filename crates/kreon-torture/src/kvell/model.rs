//! What each key may have.

use std::fmt;

/// A change of a key, in the order of submission.
struct Version {
    /// `None`: deleted.
    value: Option<Vec<u8>>,
    is_answered: bool,
    /// Events of the device when it was acknowledged as durable.
    durable_at: Option<usize>,
    /// It was refused, and must never be seen.
    is_refused: bool,
}

/// Short: a value is told by its length and its stamp.
impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            None => write!(f, "none")?,
            Some(value) => {
                let stamp = value.first_chunk().map(|stamp| u64::from_le_bytes(*stamp));
                write!(f, "{} B of {stamp:?}", value.len())?;
            }
        }
        let answered = if self.is_answered { " answered" } else { "" };
        let refused = if self.is_refused { " refused" } else { "" };
        write!(f, "{answered}{refused} durable at {:?}", self.durable_at)
    }
}

/// The versions of one key. The first is what it had when the store was opened.
#[derive(Debug)]
pub struct KeyModel {
    versions: Vec<Version>,
}

impl KeyModel {
    pub fn new(value: Option<Vec<u8>>) -> Self {
        Self {
            versions: vec![Version {
                value,
                is_answered: true,
                durable_at: Some(0),
                is_refused: false,
            }],
        }
    }

    /// The same key at a later opening, when the last version is durable.
    pub fn again(&self) -> Self {
        Self::new(self.last().map(<[u8]>::to_vec))
    }

    /// A change is submitted. Returns its number.
    pub fn begin(&mut self, value: Option<Vec<u8>>) -> usize {
        self.versions.push(Version {
            value,
            is_answered: false,
            durable_at: None,
            is_refused: false,
        });
        self.versions.len() - 1
    }

    /// The change was acknowledged; as durable, after so many events of the device.
    pub fn done(&mut self, number: usize, durable_at: Option<usize>) {
        if let Some(version) = self.versions.get_mut(number) {
            version.is_answered = true;
            version.durable_at = durable_at;
        }
    }

    /// The change was refused.
    pub fn refused(&mut self, number: usize) {
        if let Some(version) = self.versions.get_mut(number) {
            version.is_refused = true;
        }
    }

    /// The first version that a get may see that begins now.
    pub fn floor(&self) -> usize {
        let answered = |version: &Version| version.is_answered && !version.is_refused;
        self.versions.iter().rposition(answered).unwrap_or(0)
    }

    /// Whether a get that began at `floor` may see `value` now.
    pub fn may_see(&self, floor: usize, value: Option<&[u8]>) -> bool {
        let seen = self.versions.iter().skip(floor);
        let mut fit = seen.filter(|it| !it.is_refused && it.value.as_deref() == value);
        fit.next().is_some()
    }

    /// Whether the key may have `value` after a power cut behind so many events.
    pub fn may_survive(&self, events: usize, value: Option<&[u8]>) -> bool {
        let durable = |version: &Version| version.durable_at.is_some_and(|at| at <= events);
        let floor = self.versions.iter().rposition(durable).unwrap_or(0);
        self.may_see(floor, value)
    }

    /// The last version.
    pub fn last(&self) -> Option<&[u8]> {
        let kept = self.versions.iter().rev().find(|it| !it.is_refused);
        kept.and_then(|version| version.value.as_deref())
    }
}

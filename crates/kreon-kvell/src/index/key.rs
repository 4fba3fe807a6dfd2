//! What entries are ordered by.

/// The order of the entries: by the first N bytes of the key, a whole key before the longer ones, then by location (in
/// units of 8 bytes), so that each entry of a tie group has a place of its own.
///
/// A key that is searched for may have a location of [`Location::UNITS_LIMIT`](super::Location::UNITS_LIMIT): it stands
/// behind all entries with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether the key goes on behind `bytes`.
    pub(super) truncated: bool,
    pub(super) at: u64,
}

impl Key<'_> {
    /// Before all other keys.
    pub(super) const FIRST: Key<'static> = Key {
        bytes: &[],
        truncated: false,
        at: 0,
    };
}

/// A key with its own bytes: a separator on its way to another node.
#[derive(Debug)]
pub(super) struct OwnKey {
    pub(super) bytes: Vec<u8>,
    pub(super) truncated: bool,
    pub(super) at: u64,
}

impl OwnKey {
    /// [`Key::FIRST`].
    pub(super) fn first() -> Self {
        Self {
            bytes: Vec::new(),
            truncated: false,
            at: 0,
        }
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key {
            bytes: &self.bytes,
            truncated: self.truncated,
            at: self.at,
        }
    }
}

/// Length of the common prefix.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

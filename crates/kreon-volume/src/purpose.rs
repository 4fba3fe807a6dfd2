//! What an allocation is for: it decides how much of the reserve the allocation may use.

use kreon_base::{Error, ErrorKind};

/// How far an allocation may dip into the reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// New data: leaves the whole reserve untouched.
    Put,
    /// Deletions: may use half of the reserve, so that a full store can be emptied.
    Delete,
    /// Garbage collection: may use a few segments. The next spill frees its victims, and needs the rest.
    Collection,
    /// Spills and checkpoints: may use all of it, because they free space.
    Maintenance,
}

impl Purpose {
    /// The error of an allocation that the reserve leaves no room for.
    pub(crate) fn out_of_space(self) -> Error {
        out_of_space(match self {
            Self::Put => "new data",
            Self::Delete => "deletions",
            Self::Collection => "moved records",
            Self::Maintenance => "a spill or checkpoint",
        })
    }
}

pub(crate) fn out_of_space(what: &str) -> Error {
    Error::new(
        ErrorKind::OutOfSpace,
        format!("the volume has no room left for {what}; delete data or give it more space"),
    )
}

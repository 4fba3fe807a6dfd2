//! How far a request came.

use super::parts::Got;
use super::request::Reply;
use crate::space::Place;

/// How far a request came.
pub enum Step {
    /// It is done.
    Reply(Reply),
    /// Its reply follows a write.
    Written,
    /// It goes on when this cell has been read.
    Read(Place),
    /// It goes on whenever one of these cells has been read.
    ReadSome(Vec<Place>),
    /// It goes on when more parts of its value have been read or written.
    Parts,
    /// It goes on at once, in another way.
    Again,
    /// It goes on after a flush.
    Flush,
}

impl From<Got> for Step {
    fn from(got: Got) -> Self {
        match got {
            Got::Value(value) => Self::Reply(Reply::Value(Some(value))),
            Got::Read(place) => Self::Read(place),
            Got::Parts => Self::Parts,
        }
    }
}

//! What a client of this example says to a server, and what that answers. Integers are little endian.

use std::io::Result;

use kreon_wire::GroupId;

use super::coded::{Put, Take};

/// The one group.
pub const GROUP: GroupId = GroupId(1);

/// Bytes of a value.
pub const VALUE_BYTES: usize = 1024;

/// The value of a key.
pub fn value(key: u64) -> Vec<u8> {
    let mut state = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(VALUE_BYTES);
    while bytes.len() < VALUE_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// A key as the store has it: spread over all keys, so that loading is not in their order.
pub fn key_bytes(key: u64) -> [u8; 8] {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// A question.
pub enum Request<'a> {
    /// The answer tells that all puts up to this one are replicated.
    Put(u64, &'a [u8]),
    Get(u64),
    Status,
    /// Makes all durable everywhere, and lists what is in use.
    Occupied,
    Verify,
}

/// How a server stands.
#[derive(Clone, Debug, Default)]
pub struct Status {
    pub is_serving: bool,
    pub members: u64,
    /// Bytes that were sent on links for streams, and for control messages.
    pub sent_bytes: (u64, u64),
    /// Of its last promotion: sealed, equal, opened, serving.
    pub moments: [u64; 4],
}

/// Bytes of the volume that are in use: offsets and lengths.
pub type Ranges = Vec<(u64, u64)>;

/// An answer.
pub enum Reply {
    /// All puts up to this one are replicated.
    Done,
    Value(Option<Vec<u8>>),
    Status(Status),
    Occupied(Ranges),
    /// What is wrong.
    Verified(u64),
    /// Not here, or not now.
    Refused,
}

impl Request<'_> {
    pub fn encode(&self) -> Vec<u8> {
        let mut put = Put::default();
        match self {
            Self::Put(key, value) => {
                put.u8(0).u64(*key);
                put.0.extend_from_slice(value);
            }
            Self::Get(key) => _ = put.u8(1).u64(*key),
            Self::Status => _ = put.u8(2),
            Self::Occupied => _ = put.u8(3),
            Self::Verify => _ = put.u8(4),
        }
        put.0
    }

    pub fn decode(bytes: &[u8]) -> Result<Request<'_>> {
        let mut take = Take(bytes);
        Ok(match take.u8()? {
            0 => Request::Put(take.u64()?, take.0),
            1 => Request::Get(take.u64()?),
            2 => Request::Status,
            3 => Request::Occupied,
            _ => Request::Verify,
        })
    }
}

impl Reply {
    pub fn encode(&self) -> Vec<u8> {
        let mut put = Put::default();
        match self {
            Self::Done => _ = put.u8(0),
            Self::Value(None) => _ = put.u8(1),
            Self::Value(Some(value)) => _ = put.u8(2).bytes(value),
            Self::Status(status) => {
                put.u8(3).u8(status.is_serving.into()).u64(status.members);
                put.u64(status.sent_bytes.0).u64(status.sent_bytes.1);
                status.moments.iter().for_each(|at| _ = put.u64(*at));
            }
            Self::Occupied(ranges) => {
                put.u8(4);
                for (offset, len_bytes) in ranges {
                    put.u64(*offset).u64(*len_bytes);
                }
            }
            Self::Verified(problems) => _ = put.u8(5).u64(*problems),
            Self::Refused => _ = put.u8(6),
        }
        put.0
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut take = Take(bytes);
        Ok(match take.u8()? {
            0 => Self::Done,
            1 => Self::Value(None),
            2 => Self::Value(Some(take.bytes()?.to_vec())),
            3 => Self::Status(Status {
                is_serving: take.u8()? != 0,
                members: take.u64()?,
                sent_bytes: (take.u64()?, take.u64()?),
                moments: [take.u64()?, take.u64()?, take.u64()?, take.u64()?],
            }),
            4 => {
                let mut ranges = Vec::new();
                while !take.0.is_empty() {
                    ranges.push((take.u64()?, take.u64()?));
                }
                Self::Occupied(ranges)
            }
            5 => Self::Verified(take.u64()?),
            _ => Self::Refused,
        })
    }
}

//! The packets of a stream, from a primary to a backup.

use kreon_base::{Lsn, SEGMENT_BYTES};
use kreon_format::{LOG_HEADER_BYTES, MOVED_SEQUENCE_MIN, RECORD_ALIGN_BYTES, lsn_at};

use crate::fields::Fields;
use crate::frame::{Address, BodyFront, Encoded, Frame};
use crate::ids::{FlushNumber, GroupId, StreamNumber, Term};
use crate::kind::Kind;
use crate::limits::{BLOCK_BYTES, VOLUME_BYTES_MAX};
use crate::violation::Violation;

/// End of the longest main log.
pub const LSN_MAX: Lsn = lsn_at(MOVED_SEQUENCE_MIN, LOG_HEADER_BYTES);

/// What a primary did to its volume, for a backup to do likewise. All offsets and lengths are bytes of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamPacket<'a> {
    /// Bytes of the main log, committed, within one segment.
    Log {
        /// Position in the log of the first of them that is payload: headers of segments have none.
        lsn: Lsn,
        /// Where they stand; a multiple of [`RECORD_ALIGN_BYTES`].
        offset: u64,
        /// 8 bytes to 64 KiB, a multiple of [`RECORD_ALIGN_BYTES`].
        bytes: &'a [u8],
    },
    /// Bytes that are not the main log's.
    Pages {
        /// Where they stand; a multiple of [`BLOCK_BYTES`].
        offset: u64,
        /// 4 to 64 KiB, a multiple of [`BLOCK_BYTES`].
        bytes: &'a [u8],
    },
    /// The volume is at least this long from now on.
    Grow {
        /// A multiple of [`BLOCK_BYTES`], up to [`VOLUME_BYTES_MAX`].
        len_bytes: u64,
    },
    /// The range has space.
    Allocate {
        /// A multiple of [`BLOCK_BYTES`].
        offset: u64,
        /// A positive multiple of [`BLOCK_BYTES`].
        len_bytes: u64,
    },
    /// The range is released; it reads as zeroes or as before.
    Discard {
        /// A multiple of [`BLOCK_BYTES`].
        offset: u64,
        /// A positive multiple of [`BLOCK_BYTES`].
        len_bytes: u64,
    },
    /// All packets before it are to become durable, which `Progress::flushed` tells.
    Flush {
        /// The flush.
        number: FlushNumber,
        /// The log up to here is part of it.
        log_upto: Lsn,
    },
    /// Blocks of the primary's volume as they were read, for a joiner. Only those count that nothing wrote since it
    /// attached.
    Copy {
        /// A multiple of [`BLOCK_BYTES`].
        offset: u64,
        /// 4 to 64 KiB, a multiple of [`BLOCK_BYTES`].
        bytes: &'a [u8],
    },
    /// All blocks were copied.
    Complete,
}

/// A range of bytes of the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteRange {
    /// Its first byte.
    pub offset: u64,
    /// Its length.
    pub len_bytes: u64,
}

impl ByteRange {
    /// Whether it lies within a volume of this length.
    pub fn is_within(&self, volume_bytes: u64) -> bool {
        let end = self.offset.checked_add(self.len_bytes);
        end.is_some_and(|end| end <= volume_bytes)
    }
}

impl<'a> StreamPacket<'a> {
    /// The packet in `frame`; an error for kinds that are not a primary's. What the volume and the stream must allow,
    /// [`Inlet`](crate::Inlet) checks.
    pub fn decode(frame: &Frame<'a>) -> Result<Self, Violation> {
        let mut fields = Fields::of(frame.body());
        let packet = match frame.header().kind {
            Kind::Log => Self::Log {
                lsn: lsn(&mut fields)?,
                offset: fields.u64()?,
                bytes: fields.rest(),
            },
            Kind::Pages => Self::Pages {
                offset: fields.u64()?,
                bytes: fields.rest(),
            },
            Kind::Copy => Self::Copy {
                offset: fields.u64()?,
                bytes: fields.rest(),
            },
            _ => Self::without_data(frame.header().kind, fields)?,
        };
        packet.check().map(|()| packet)
    }

    fn without_data(kind: Kind, mut fields: Fields<'_>) -> Result<Self, Violation> {
        let packet = match kind {
            Kind::Grow => Self::Grow {
                len_bytes: fields.u64()?,
            },
            Kind::Allocate => Self::Allocate {
                offset: fields.u64()?,
                len_bytes: fields.u64()?,
            },
            Kind::Discard => Self::Discard {
                offset: fields.u64()?,
                len_bytes: fields.u64()?,
            },
            Kind::Flush => Self::Flush {
                number: FlushNumber(fields.u64()?),
                log_upto: lsn(&mut fields)?,
            },
            Kind::Complete => Self::Complete,
            _ => return Err(Violation::KindForState),
        };
        fields.end().map(|()| packet)
    }

    fn check(&self) -> Result<(), Violation> {
        if let Self::Flush { number, .. } = self
            && number.0 == 0
        {
            return Err(Violation::FieldValue);
        }
        let Some(range) = self.range() else {
            return Ok(());
        };
        if range.len_bytes == 0 {
            return Err(Violation::FieldValue);
        }
        let align_bytes = match self {
            Self::Log { .. } => RECORD_ALIGN_BYTES as u64,
            _ => BLOCK_BYTES,
        };
        if !(range.offset | range.len_bytes).is_multiple_of(align_bytes) {
            return Err(Violation::Alignment);
        }
        let segment_left_bytes = SEGMENT_BYTES - range.offset % SEGMENT_BYTES;
        let leaves_segment =
            matches!(self, Self::Log { .. }) && range.len_bytes > segment_left_bytes;
        match range.is_within(VOLUME_BYTES_MAX) && !leaves_segment {
            true => Ok(()),
            false => Err(Violation::Range),
        }
    }

    /// What of the volume it is about; for `Grow` all of it.
    pub fn range(&self) -> Option<ByteRange> {
        let (offset, len_bytes) = match *self {
            Self::Log { offset, bytes, .. } => (offset, bytes.len() as u64),
            Self::Pages { offset, bytes } | Self::Copy { offset, bytes } => {
                (offset, bytes.len() as u64)
            }
            Self::Grow { len_bytes } => (0, len_bytes),
            Self::Allocate { offset, len_bytes } | Self::Discard { offset, len_bytes } => {
                (offset, len_bytes)
            }
            Self::Flush { .. } | Self::Complete => return None,
        };
        Some(ByteRange { offset, len_bytes })
    }

    /// For log, the position behind its last byte of payload.
    pub fn log_end(&self) -> Option<Lsn> {
        let Self::Log { lsn, offset, bytes } = *self else {
            return None;
        };
        let header_left = u64::from(LOG_HEADER_BYTES).saturating_sub(offset % SEGMENT_BYTES);
        let payload_bytes = (bytes.len() as u64).saturating_sub(header_left);
        Some(Lsn(lsn.0.saturating_add(payload_bytes)))
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Log { .. } => Kind::Log,
            Self::Pages { .. } => Kind::Pages,
            Self::Grow { .. } => Kind::Grow,
            Self::Allocate { .. } => Kind::Allocate,
            Self::Discard { .. } => Kind::Discard,
            Self::Flush { .. } => Kind::Flush,
            Self::Copy { .. } => Kind::Copy,
            Self::Complete => Kind::Complete,
        }
    }

    /// The packet as the one with this number of the stream. Its data is not copied.
    ///
    /// Who sends what [`decode`](Self::decode) refuses loses the link.
    pub fn encode(&self, group: GroupId, term: Term, number: StreamNumber) -> Encoded<'a> {
        let mut front = BodyFront::new();
        let mut data: &[u8] = &[];
        match *self {
            Self::Log { lsn, offset, bytes } => {
                front.put_u64(lsn.0).put_u64(offset);
                data = bytes;
            }
            Self::Pages { offset, bytes } | Self::Copy { offset, bytes } => {
                front.put_u64(offset);
                data = bytes;
            }
            Self::Grow { len_bytes } => {
                front.put_u64(len_bytes);
            }
            Self::Allocate { offset, len_bytes } | Self::Discard { offset, len_bytes } => {
                front.put_u64(offset).put_u64(len_bytes);
            }
            Self::Flush { number, log_upto } => {
                front.put_u64(number.0).put_u64(log_upto.0);
            }
            Self::Complete => {}
        }
        let to = Address {
            group,
            term,
            number: number.0,
        };
        Encoded::seal(self.kind(), &to, &front, data)
    }
}

/// A position in the main log.
pub(crate) fn lsn(fields: &mut Fields<'_>) -> Result<Lsn, Violation> {
    fields.u64_upto(LSN_MAX.0).map(Lsn)
}

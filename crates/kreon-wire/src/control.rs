//! Control messages between servers.

use kreon_base::Lsn;
use kreon_format::StoreId;

use crate::config::GroupConfig;
use crate::fields::Fields;
use crate::frame::{Address, BodyFront, Encoded, Frame};
use crate::ids::ProcessId;
use crate::kind::Kind;
use crate::limits::{BLOCK_BYTES, VOLUME_BYTES_MAX};
use crate::refused::Refused;
use crate::room::Room;
use crate::slot::{Extent, Superblocks};
use crate::standing::Standing;
use crate::stream::lsn;
use crate::violation::Violation;

/// A question or an answer on a control connection. Its header has the group, the term and the number of the question or
/// beat, which the answer repeats.
///
/// None of them gives office: a server acts upon what it has read from the coordinator by itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// It is not acted upon.
    Refused(Refused),
    /// From a primary to an in-sync member: take my stream of this term. The store is equal on both sides.
    Open(Open),
    /// The stream is open, and packet 1 is expected.
    Opened {
        /// Length of the member's volume in bytes.
        volume_bytes: u64,
        /// Its log up to here is durable.
        log_durable: Lsn,
        /// First credit.
        room: Room,
    },
    /// From a primary: are you there, in this term?
    Beat,
    /// Yes, and no higher term was sealed.
    Beaten {
        /// Free bytes of the member's device, divided by its groups.
        free_bytes: u64,
    },
    /// From a master: take nothing of lower terms any more, then say what you have. The header has the new term.
    Seal,
    /// All that was received in lower terms is durable, and nothing more of them will be.
    Sealed {
        /// The start of the member that had it.
        process: ProcessId,
        /// What it has.
        extent: Extent,
    },
    /// From a coming primary: have these superblocks, and the log up to this end.
    Equalise(Equalise),
    /// What the member has now, durable: it is equal when this is what `Equalise` said, or longer.
    Equal {
        /// What it has.
        extent: Extent,
    },
    /// From a primary to a member that is not in the set: prepare a copy of the store from its beginning.
    Attach(Attach),
    /// The joiner has an empty volume without a superblock; packet 1 is expected.
    Attached {
        /// Free bytes of its device behind that volume.
        free_bytes: u64,
        /// First credit.
        room: Room,
    },
    /// The configuration of the group may have changed: read it.
    Look,
    /// How does the group stand at your place?
    Status,
    /// So it stands.
    Standing(Standing),
}

/// What a stream starts from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Open {
    /// The store.
    pub store: StoreId,
    /// Length of the primary's volume in bytes.
    pub volume_bytes: u64,
    /// Version of the format that the primary writes.
    pub format: u8,
    /// The configuration by which the primary has its office: group and term are those of the header.
    pub config: GroupConfig,
}

/// What a copy starts from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attach {
    /// As for an in-sync member.
    pub open: Open,
    /// Bytes of the volume that have space, all of which the joiner needs, up to the length of the volume.
    pub backed_bytes: u64,
}

/// What all members are to have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Equalise {
    /// The chosen superblock and end of the log.
    pub extent: Extent,
    /// The pages of the slots; `None` where the member has said that it has them.
    pub superblocks: Option<Superblocks>,
}

impl Open {
    fn read(fields: &mut Fields<'_>) -> Result<(StoreId, u64, u8), Violation> {
        let store = StoreId(fields.u64()?);
        let volume_bytes = volume_bytes(fields)?;
        let format = fields.u8()?;
        fields.zeroes::<7>()?;
        match format {
            0 => Err(Violation::FieldValue),
            _ => Ok((store, volume_bytes, format)),
        }
    }

    fn with_config(
        (store, volume_bytes, format): (StoreId, u64, u8),
        frame: &Frame<'_>,
        fields: Fields<'_>,
    ) -> Result<Self, Violation> {
        let config = GroupConfig::decode(fields.rest())?;
        if config.group != frame.header().group {
            return Err(Violation::OtherGroup);
        }
        if config.term != frame.header().term {
            return Err(Violation::OtherTerm);
        }
        Ok(Self {
            store,
            volume_bytes,
            format,
            config,
        })
    }

    fn put(&self, front: &mut BodyFront) {
        front.put_u64(self.store.0).put_u64(self.volume_bytes);
        front.put_u8(self.format).put_zeroes(7);
    }
}

/// A length of a volume.
fn volume_bytes(fields: &mut Fields<'_>) -> Result<u64, Violation> {
    match fields.u64()? {
        bytes if bytes > VOLUME_BYTES_MAX => Err(Violation::Range),
        bytes if !bytes.is_multiple_of(BLOCK_BYTES) => Err(Violation::Alignment),
        bytes => Ok(bytes),
    }
}

impl Control {
    /// The message in `frame`; an error for kinds that are no control messages.
    pub fn decode(frame: &Frame<'_>) -> Result<Self, Violation> {
        let mut fields = Fields::of(frame.body());
        let message = match frame.header().kind {
            Kind::Refused => return Refused::read(fields).map(Self::Refused),
            Kind::Standing => return Standing::read(fields).map(Self::Standing),
            Kind::Open => {
                let open = Open::read(&mut fields)?;
                return Open::with_config(open, frame, fields).map(Self::Open);
            }
            Kind::Attach => return Attach::read(frame, fields).map(Self::Attach),
            Kind::Equalise => return Equalise::read(fields).map(Self::Equalise),
            Kind::Opened => Self::Opened {
                volume_bytes: volume_bytes(&mut fields)?,
                log_durable: lsn(&mut fields)?,
                room: Room::decode(&mut fields)?,
            },
            Kind::Beat => Self::Beat,
            Kind::Beaten => Self::Beaten {
                free_bytes: fields.u64()?,
            },
            Kind::Seal => Self::Seal,
            Kind::Sealed => Self::Sealed {
                process: ProcessId(fields.array()?),
                extent: Extent::read(&mut fields)?,
            },
            Kind::Equal => Self::Equal {
                extent: Extent::read(&mut fields)?,
            },
            Kind::Attached => Self::Attached {
                free_bytes: fields.u64()?,
                room: Room::decode(&mut fields)?,
            },
            Kind::Look => Self::Look,
            Kind::Status => Self::Status,
            _ => return Err(Violation::KindForState),
        };
        fields.end().map(|()| message)
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Refused(_) => Kind::Refused,
            Self::Open(_) => Kind::Open,
            Self::Opened { .. } => Kind::Opened,
            Self::Beat => Kind::Beat,
            Self::Beaten { .. } => Kind::Beaten,
            Self::Seal => Kind::Seal,
            Self::Sealed { .. } => Kind::Sealed,
            Self::Equalise(_) => Kind::Equalise,
            Self::Equal { .. } => Kind::Equal,
            Self::Attach(_) => Kind::Attach,
            Self::Attached { .. } => Kind::Attached,
            Self::Look => Kind::Look,
            Self::Status => Kind::Status,
            Self::Standing(_) => Kind::Standing,
        }
    }

    /// The packet, with the header's fields from `to`.
    pub fn encode(&self, to: &Address) -> Vec<u8> {
        let mut front = BodyFront::new();
        let mut data = Vec::new();
        match self {
            Self::Refused(refused) => refused.put(&mut front),
            Self::Standing(standing) => standing.put(&mut front),
            Self::Open(open) => {
                open.put(&mut front);
                data = open.config.encode();
            }
            Self::Attach(attach) => {
                attach.open.put(&mut front);
                front.put_u64(attach.backed_bytes);
                data = attach.open.config.encode();
            }
            Self::Equalise(equalise) => {
                equalise.extent.put(&mut front);
                let pages = equalise.superblocks.as_ref();
                data = pages.map_or_else(Vec::new, |pages| pages.bytes().to_vec());
            }
            _ => self.put(&mut front),
        }
        Encoded::seal(self.kind(), to, &front, &data).to_vec()
    }

    /// The fields of the answers.
    fn put(&self, front: &mut BodyFront) {
        match self {
            Self::Opened {
                volume_bytes,
                log_durable,
                room,
            } => {
                front.put_u64(*volume_bytes).put_u64(log_durable.0);
                room.put(front);
            }
            Self::Beaten { free_bytes } => {
                front.put_u64(*free_bytes);
            }
            Self::Sealed { process, extent } => {
                front.put(&process.0);
                extent.put(front);
            }
            Self::Equal { extent } => extent.put(front),
            Self::Attached { free_bytes, room } => {
                front.put_u64(*free_bytes);
                room.put(front);
            }
            _ => {}
        }
    }
}

impl Attach {
    fn read(frame: &Frame<'_>, mut fields: Fields<'_>) -> Result<Self, Violation> {
        let open = Open::read(&mut fields)?;
        let backed_bytes = volume_bytes(&mut fields)?;
        if backed_bytes > open.1 {
            return Err(Violation::Order);
        }
        let open = Open::with_config(open, frame, fields)?;
        Ok(Self { open, backed_bytes })
    }
}

impl Equalise {
    fn read(mut fields: Fields<'_>) -> Result<Self, Violation> {
        let extent = Extent::read(&mut fields)?;
        let pages = fields.rest();
        let superblocks = match pages.is_empty() {
            true => None,
            false => Some(Superblocks::of(pages)?),
        };
        Ok(Self {
            extent,
            superblocks,
        })
    }
}

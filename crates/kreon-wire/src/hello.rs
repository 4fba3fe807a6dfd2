//! The first messages on a link, both ways: who is there, a challenge, and its answer.

use crate::fields::Fields;
use crate::frame::{Address, BodyFront, Encoded, Frame};
use crate::ids::{Member, ProcessId, ServerId};
use crate::kind::Kind;
use crate::limits::CLUSTER_NAME_BYTES_MAX;
use crate::role::Role;
use crate::violation::Violation;

/// Who I am, what the link is to be, and a challenge. Each side sends one and reads one before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hello<'a> {
    /// What the link is to be: not `BeforeProof`. Both sides name the same.
    pub role: Role,
    /// Whether the sender has a key: a `Proof` under it follows, and one is expected.
    pub keyed: bool,
    /// The sender. A client is [`ServerId`] 0.
    pub sender: Member,
    /// Random bytes, fresh for each link.
    pub challenge: [u8; 32],
    /// Name of the cluster: 1 to [`CLUSTER_NAME_BYTES_MAX`] bytes without control characters.
    pub cluster: &'a str,
}

impl<'a> Hello<'a> {
    /// The message in `frame`; an error for other kinds.
    pub fn decode(frame: &Frame<'a>) -> Result<Self, Violation> {
        if frame.header().kind != Kind::Hello {
            return Err(Violation::KindForState);
        }
        let mut fields = Fields::of(frame.body());
        let role = role_of(fields.u8()?)?;
        let keyed = fields.flag()?;
        fields.zeroes::<2>()?;
        let sender = Member {
            server: ServerId(fields.u32()?),
            process: ProcessId(fields.array()?),
        };
        if (sender.server == ServerId(0)) != (role == Role::Client) {
            return Err(Violation::FieldValue);
        }
        let challenge = fields.array()?;
        let name_bytes = fields.left();
        if name_bytes > CLUSTER_NAME_BYTES_MAX {
            return Err(Violation::Count);
        }
        let cluster = fields.text(name_bytes)?;
        Ok(Self {
            role,
            keyed,
            sender,
            challenge,
            cluster,
        })
    }

    /// The packet. Its body is what a proof covers.
    pub fn encode(&self) -> Encoded<'a> {
        let mut front = BodyFront::new();
        front.put_u8(code_of(self.role)).put_u8(self.keyed.into());
        front.put_zeroes(2).put_u32(self.sender.server.0);
        front.put(&self.sender.process.0).put(&self.challenge);
        let cluster = self.cluster.as_bytes();
        Encoded::seal(Kind::Hello, &Address::default(), &front, cluster)
    }
}

const fn code_of(role: Role) -> u8 {
    match role {
        Role::BeforeProof => 0,
        Role::Client => 1,
        Role::PeerStream => 2,
        Role::PeerControl => 3,
    }
}

fn role_of(code: u8) -> Result<Role, Violation> {
    match code {
        1 => Ok(Role::Client),
        2 => Ok(Role::PeerStream),
        3 => Ok(Role::PeerControl),
        _ => Err(Violation::FieldValue),
    }
}

/// The answer to a challenge. What it is computed from is the affair of who proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Proof {
    /// A message authentication code of 256 bits.
    pub code: [u8; 32],
}

impl Proof {
    /// The message in `frame`; an error for other kinds.
    pub fn decode(frame: &Frame<'_>) -> Result<Self, Violation> {
        if frame.header().kind != Kind::Proof {
            return Err(Violation::KindForState);
        }
        let mut fields = Fields::of(frame.body());
        let code = fields.array()?;
        fields.end().map(|()| Self { code })
    }

    /// The packet.
    pub fn encode(&self) -> Encoded<'static> {
        let mut front = BodyFront::new();
        front.put(&self.code);
        Encoded::seal(Kind::Proof, &Address::default(), &front, &[])
    }
}

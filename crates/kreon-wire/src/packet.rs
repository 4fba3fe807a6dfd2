//! Any packet.

use crate::control::Control;
use crate::frame::{Address, BodyFront, Encoded, Frame};
use crate::hello::{Hello, Proof};
use crate::ids::StreamNumber;
use crate::kind::Kind;
use crate::progress::Progress;
use crate::stream::StreamPacket;
use crate::violation::Violation;

/// What any packet can be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Packet<'a> {
    /// Who is there.
    Hello(Hello<'a>),
    /// That it is true.
    Proof(Proof),
    /// From a primary to a backup, on their stream.
    Stream(StreamPacket<'a>),
    /// From a backup to its primary, on their stream.
    Progress(Progress),
    /// Between servers, but [`Refused`](Control::Refused) everywhere, and `Status` and `Standing` for clients, too.
    Control(Control),
    /// What a client asks for: the body, which [`Request`](crate::Request) decodes. Group and number are in the header.
    Request(&'a [u8]),
    /// The answer to it: the body, which [`Reply`](crate::Reply) decodes.
    Reply(&'a [u8]),
}

impl<'a> Packet<'a> {
    /// The packet in `frame`.
    pub fn decode(frame: &Frame<'a>) -> Result<Self, Violation> {
        use Kind::*;
        match frame.header().kind {
            Kind::Hello => crate::hello::Hello::decode(frame).map(Self::Hello),
            Kind::Proof => crate::hello::Proof::decode(frame).map(Self::Proof),
            Log | Pages | Grow | Allocate | Discard | Flush | Kind::Copy | Complete => {
                StreamPacket::decode(frame).map(Self::Stream)
            }
            Kind::Progress => crate::progress::Progress::decode(frame).map(Self::Progress),
            Kind::Request => Ok(Self::Request(frame.body())),
            Kind::Reply => Ok(Self::Reply(frame.body())),
            _ => Control::decode(frame).map(Self::Control),
        }
    }

    /// The packet with the header's fields from `to`, copied; those that the kind has not are left out.
    pub fn encode(&self, to: &Address) -> Vec<u8> {
        let number = StreamNumber(to.number);
        match self {
            Self::Hello(hello) => hello.encode().to_vec(),
            Self::Proof(proof) => proof.encode().to_vec(),
            Self::Stream(packet) => packet.encode(to.group, to.term, number).to_vec(),
            Self::Progress(progress) => progress.encode(to.group, to.term).to_vec(),
            Self::Control(control) => control.encode(to),
            Self::Request(bytes) => Self::request(to, bytes).to_vec(),
            Self::Reply(bytes) => Self::reply(to, bytes).to_vec(),
        }
    }

    /// The packet of a client's request, with the header's fields from `to`.
    pub fn request(to: &Address, bytes: &'a [u8]) -> Encoded<'a> {
        Encoded::seal(Kind::Request, to, &BodyFront::new(), bytes)
    }

    /// The packet of the answer to a client's request, with the header's fields from `to`.
    pub fn reply(to: &Address, bytes: &'a [u8]) -> Encoded<'a> {
        Encoded::seal(Kind::Reply, to, &BodyFront::new(), bytes)
    }
}

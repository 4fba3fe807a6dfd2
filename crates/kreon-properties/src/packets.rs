//! What servers send each other.

use arbitrary::{Arbitrary, Result, Unstructured};
use kreon_base::Lsn;
use kreon_wire::limits::{HEADER_BYTES, VOLUME_BYTES_MAX};
use kreon_wire::*;

use crate::case::with;
use crate::forge::{Origin, damage, flip};
use crate::messages::{any_control, any_progress, any_room, any_stream_packet};
use crate::seal;

const CHECKSUM_AT: usize = 12;

/// A packet as a link reads it, and then the end of a stream.
pub fn packet(bytes: &[u8]) {
    with(bytes, |u| {
        let to = any_address(u)?;
        let cluster = "prod";
        let body = u.bytes(3)?.to_vec();
        let given = any_packet(u, &to, cluster, &body)?;
        let whole = given.encode(&to);
        let origin = Origin::arbitrary(u)?;
        let bytes = forge(u, origin, whole)?;
        let mut accepted = 0;
        for role in Role::ALL {
            let Ok(frame) = Frame::open(&bytes, role) else {
                continue;
            };
            accepted += 1;
            assert!(frame.header().body_bytes <= role.body_bytes_max());
            let found = Packet::decode(&frame);
            if origin == Origin::Whole {
                assert_eq!(found.as_ref(), Ok(&given));
            }
            if let Ok(found) = found {
                assert_eq!(found.encode(&frame.address()), bytes);
            }
            streams(u, &frame)?;
        }
        match origin {
            Origin::Whole => assert!(accepted > 0),
            Origin::Flipped => assert_eq!(accepted, 0),
            _ => {}
        }
        assert!(GroupConfig::decode(&bytes).is_err());
        Ok(())
    });
}

/// Both ends of a stream take nothing that leads out of the volume, beyond the credit or out of order.
fn streams(u: &mut Unstructured<'_>, frame: &Frame<'_>) -> Result<()> {
    let Address { group, term, .. } = frame.address();
    let volume_bytes = u.int_in_range(0..=VOLUME_BYTES_MAX)?;
    let room = any_room(u)?;
    for mut inlet in [
        Inlet::following(group, term, volume_bytes, room),
        Inlet::joining(group, term, volume_bytes, room),
    ] {
        let Ok(taken) = inlet.admit(frame) else {
            assert_eq!(inlet.last(), StreamNumber(0));
            continue;
        };
        assert_eq!(frame.header().number, 1);
        let grows = matches!(taken, StreamPacket::Grow { .. });
        let range = taken.range();
        assert!(grows || range.is_none_or(|range| range.is_within(volume_bytes)));
        assert!(inlet.taken().fits(&room));
        assert_eq!(inlet.admit(frame), Err(expected_again(&inlet, &taken)));
    }
    let mut outlet = Outlet::new(group, term, Lsn(0), Room::default());
    if let Ok(progress) = outlet.admit(frame) {
        assert_eq!(progress.received, StreamNumber(0));
        assert_eq!(progress.flushed, FlushNumber(0));
    }
    Ok(())
}

/// What a stream says of a packet that comes twice.
fn expected_again(inlet: &Inlet, taken: &StreamPacket<'_>) -> Violation {
    let allowed = inlet.state().allows(taken.kind());
    if allowed {
        Violation::Number
    } else {
        Violation::KindForState
    }
}

fn any_address(u: &mut Unstructured<'_>) -> Result<Address> {
    Ok(Address {
        group: GroupId(u.int_in_range(1..=u32::MAX)?),
        term: Term(u.int_in_range(1..=Term::MAX.0)?),
        number: *u.choose(&[1, 1, 1, 2, u64::MAX])?,
    })
}

fn any_packet<'a>(
    u: &mut Unstructured<'_>,
    to: &Address,
    cluster: &'a str,
    body: &'a [u8],
) -> Result<Packet<'a>> {
    Ok(match u.int_in_range(0..=9)? {
        0..=3 => Packet::Stream(any_stream_packet(u)?),
        4..=6 => Packet::Control(any_control(u, to)?),
        7 => Packet::Progress(any_progress(u)?),
        8 => Packet::Hello(Hello {
            role: Role::PeerControl,
            keyed: u.arbitrary()?,
            sender: Member {
                server: ServerId(u.int_in_range(1..=u32::MAX)?),
                process: ProcessId(u.arbitrary()?),
            },
            challenge: u.arbitrary()?,
            cluster,
        }),
        _ if u.arbitrary()? => Packet::Request(body),
        _ => Packet::Reply(body),
    })
}

fn forge(u: &mut Unstructured<'_>, origin: Origin, mut bytes: Vec<u8>) -> Result<Vec<u8>> {
    match origin {
        Origin::Whole => {}
        Origin::Flipped => flip(u, &mut bytes)?,
        Origin::Resealed => damage(u, &mut bytes)?,
        Origin::Sealed => {
            bytes.truncate(HEADER_BYTES);
            bytes.extend_from_slice(u.bytes(u.len())?);
            let body_bytes = (bytes.len() - HEADER_BYTES) as u32;
            bytes[8..12].copy_from_slice(&body_bytes.to_le_bytes());
        }
        Origin::Raw => bytes = u.bytes(u.len())?.to_vec(),
    }
    if matches!(origin, Origin::Resealed | Origin::Sealed) {
        seal::whole(&mut bytes, CHECKSUM_AT);
    }
    Ok(bytes)
}

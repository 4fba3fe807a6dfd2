//! No damage turns a packet into another one.

use kreon_wire::limits::HEADER_BYTES;
use kreon_wire::*;

use crate::samples::{address, packet, role_of, sample, sealed};

#[test]
fn the_samples_are_decoded_as_what_was_encoded() {
    for kind in Kind::ALL {
        let bytes = sample(kind);
        let frame = Frame::open(&bytes, role_of(kind)).unwrap();
        assert_eq!(frame.address(), address(kind), "{kind:?}");
        assert_eq!(Packet::decode(&frame), Ok(packet(kind)), "{kind:?}");
    }
}

#[test]
fn no_flipped_bit_and_no_other_byte_is_accepted() {
    for kind in Kind::ALL {
        let mut bytes = sample(kind);
        // Long packets are mostly data: there, one bit of each byte has to do.
        let changes: Vec<u8> = match bytes.len() {
            0..=512 => (1..=255).collect(),
            _ => vec![1, 0x80],
        };
        for at in 0..bytes.len() {
            for change in &changes {
                bytes[at] ^= change;
                for role in Role::ALL {
                    let opened = Frame::open(&bytes, role);
                    assert!(
                        opened.is_err(),
                        "{kind:?}, byte {at} ^ {change}: {opened:?}"
                    );
                }
                bytes[at] ^= change;
            }
        }
    }
}

#[test]
fn a_packet_cut_or_lengthened_anywhere_is_refused() {
    for kind in Kind::ALL {
        let bytes = sample(kind);
        for kept in 0..bytes.len() {
            assert!(
                Frame::open(&bytes[..kept], role_of(kind)).is_err(),
                "{kind:?} {kept}"
            );
        }
        let twice = [&bytes[..], &bytes[..]].concat();
        let opened = Frame::open(&twice, role_of(kind));
        assert_eq!(opened, Err(Violation::Excess), "{kind:?}");
    }
}

/// With a right checksum a changed byte may be another packet, but then it has exactly one encoding: no bit goes unread.
#[test]
fn every_packet_has_one_encoding() {
    let mut accepted = 0;
    for kind in Kind::ALL {
        let whole = sample(kind);
        for at in (0..whole.len().min(400)).filter(|at| !(12..16).contains(at)) {
            for change in 1..=255 {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                // The length in the header stays what was written there.
                let bytes = match at {
                    8..12 => crate::samples::checksummed(bytes),
                    _ => sealed(bytes),
                };
                for role in Role::ALL {
                    accepted += u32::from(is_encoded_again(&bytes, role));
                }
            }
        }
    }
    // Numbers, offsets and data have many values.
    assert!(accepted > 10_000, "only {accepted} were accepted");
}

/// Whether `bytes` are accepted, and then encoded again to the same bytes.
fn is_encoded_again(bytes: &[u8], role: Role) -> bool {
    let Ok(frame) = Frame::open(bytes, role) else {
        return false;
    };
    let Ok(packet) = Packet::decode(&frame) else {
        return false;
    };
    let again = packet.encode(&frame.address());
    assert_eq!(again, bytes, "{packet:?}");
    assert_eq!(again.len(), HEADER_BYTES + frame.body().len());
    true
}

//! Packets with exactly one thing wrong, of each class and kind where there can be one.

use kreon_base::{Lsn, SEGMENT_BYTES};
use kreon_wire::limits::{BLOCK_BYTES, HEADER_BYTES, VOLUME_BYTES_MAX};
use kreon_wire::*;

use crate::samples::{VOLUME_BYTES, checksummed, sample, sealed};

/// Where the header has its fields.
const GROUP_AT: usize = 16;
const TERM_AT: usize = 24;
const NUMBER_AT: usize = 32;

/// The sample of `kind` with what `class` names wrong, for a receiver in a state of this role. `None` where this kind
/// cannot have it wrong, or where being in this state is what is wrong.
pub fn wrong(kind: Kind, class: Violation, role: Role) -> Option<Vec<u8>> {
    let whole = sample(kind);
    let shape = kind.shape();
    let with = |at: usize, bytes: &[u8]| Some(checksummed(over(whole.clone(), at, bytes)));
    match class {
        Violation::Short => Some(whole[..HEADER_BYTES - 1].to_vec()),
        Violation::Magic => with(0, b"krnW"),
        Violation::Version => with(4, &[2]),
        Violation::UnknownKind => with(5, &[0]),
        Violation::ReservedBits => with(7, &[0x80]),
        Violation::TooLong => with(8, &(role.body_bytes_max() + 1).to_le_bytes()),
        Violation::Length => match shape.body_bytes_min.checked_sub(1) {
            Some(fewer) => Some(sealed(whole[..HEADER_BYTES + fewer as usize].to_vec())),
            None => Some(sealed([&whole[..], &[0]].concat())),
        },
        Violation::GroupMisplaced => {
            misplaced(shape.group).and_then(|group| with(GROUP_AT, &(group as u32).to_le_bytes()))
        }
        Violation::TermMisplaced => {
            let term = misplaced(shape.term).unwrap_or(Term::MAX.0 + 1);
            with(TERM_AT, &term.to_le_bytes())
        }
        Violation::Number => {
            let number = if is_numbered_in_order(kind) {
                Some(2)
            } else {
                misplaced(shape.number)
            };
            number.and_then(|number| with(NUMBER_AT, &number.to_le_bytes()))
        }
        Violation::Cut if whole.len() == HEADER_BYTES => None,
        Violation::Cut => Some(whole[..whole.len() - 1].to_vec()),
        Violation::Excess => Some([&whole[..], &[0]].concat()),
        Violation::Checksum => Some(over(whole.clone(), 12, &[whole[12] ^ 1])),
        Violation::OtherGroup if role == Role::PeerStream => with(GROUP_AT, &[6]),
        Violation::OtherTerm if role == Role::PeerStream => with(TERM_AT, &[6]),
        Violation::OtherGroup | Violation::OtherTerm => other_config(kind, class),
        _ => wrong_body(kind, class).map(|body| with_body(kind, &body)),
    }
}

/// A value that a field must not have.
fn misplaced(presence: Presence) -> Option<u64> {
    match presence {
        Presence::None => Some(1),
        Presence::Some => Some(0),
        Presence::Any => None,
    }
}

fn is_numbered_in_order(kind: Kind) -> bool {
    State::Joining.allows(kind)
}

fn over(mut bytes: Vec<u8>, at: usize, new: &[u8]) -> Vec<u8> {
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

fn body(kind: Kind) -> Vec<u8> {
    sample(kind)[HEADER_BYTES..].to_vec()
}

fn with_body(kind: Kind, body: &[u8]) -> Vec<u8> {
    sealed([&sample(kind)[..HEADER_BYTES], body].concat())
}

/// A message with the configuration of another group or term.
fn other_config(kind: Kind, class: Violation) -> Option<Vec<u8>> {
    with_config(kind, |config| match class {
        Violation::OtherGroup => config.group = GroupId(6),
        _ => config.term = Term(6),
    })
    .map(|body| with_body(kind, &body))
}

/// The body of a message that carries a configuration, with another one.
fn with_config(kind: Kind, change: impl Fn(&mut GroupConfig)) -> Option<Vec<u8>> {
    let front = match kind {
        Kind::Open => 24,
        Kind::Attach => 32,
        _ => return None,
    };
    let mut config = crate::samples::config();
    change(&mut config);
    Some([&body(kind)[..front], &config.encode()].concat())
}

/// The body of a sample with one of its fields wrong.
fn wrong_body(kind: Kind, class: Violation) -> Option<Vec<u8>> {
    let with = |at: usize, value: u64| Some(over(body(kind), at, &value.to_le_bytes()));
    let byte = |at: usize, value: u8| Some(over(body(kind), at, &[value]));
    match class {
        Violation::FieldBits => match kind {
            Kind::Hello | Kind::Refused => byte(3, 1),
            Kind::Standing => byte(7, 1),
            Kind::Open | Kind::Attach => byte(17, 1),
            Kind::Request => byte(5, 1),
            Kind::Reply => byte(3, 1),
            _ => None,
        },
        Violation::FieldValue => match kind {
            Kind::Hello => byte(0, 0),
            Kind::Refused => byte(0, 0),
            Kind::Standing => byte(0, 99),
            Kind::Grow | Kind::Flush => with(0, 0),
            Kind::Allocate | Kind::Discard => with(8, 0),
            Kind::Log => with(0, LSN_MAX.0 + 8),
            Kind::Progress => with(24, u64::MAX),
            Kind::Open | Kind::Attach => byte(16, 0),
            Kind::Opened => with(8, u64::MAX),
            Kind::Sealed => with(16, Term::MAX.0 + 1),
            Kind::Equalise | Kind::Equal => with(8, 1 << 48),
            Kind::Request | Kind::Reply => byte(0, 0),
            _ => None,
        },
        Violation::Count if kind == Kind::Request => byte(26, 2),
        Violation::Count if kind == Kind::Reply => byte(4, 2),
        Violation::Count => with_config(kind, |config| config.ranges[0].start = vec![b'a'; 257]),
        Violation::Order if kind == Kind::Progress => with(8, 4),
        Violation::Order => with_config(kind, |config| config.ranges.swap(0, 2)),
        Violation::Alignment => match kind {
            Kind::Log => with(8, SEGMENT_BYTES + 8196),
            Kind::Pages | Kind::Copy => with(0, 8200),
            Kind::Grow => with(0, VOLUME_BYTES + 512),
            Kind::Allocate | Kind::Discard => with(8, BLOCK_BYTES - 1),
            Kind::Open | Kind::Attach => with(8, VOLUME_BYTES + 1),
            Kind::Opened => with(0, VOLUME_BYTES + 1),
            _ => None,
        },
        Violation::Range => match kind {
            Kind::Log => with(8, VOLUME_BYTES),
            Kind::Pages | Kind::Copy => with(0, VOLUME_BYTES),
            Kind::Grow | Kind::Opened => with(0, VOLUME_BYTES_MAX + BLOCK_BYTES),
            Kind::Allocate | Kind::Discard => with(8, VOLUME_BYTES),
            Kind::Open | Kind::Attach => with(8, VOLUME_BYTES_MAX + BLOCK_BYTES),
            _ => None,
        },
        Violation::Credit => match kind {
            Kind::Log => Some([&body(kind)[..], &[0; 8192]].concat()),
            Kind::Pages | Kind::Copy => Some([&body(kind)[..], &[0; 4096]].concat()),
            _ => None,
        },
        _ => None,
    }
}

/// Offsets and lengths whose sum is more than any integer holds.
#[test]
fn sums_that_overflow_lie_in_no_volume() {
    let far = u64::MAX - BLOCK_BYTES + 1;
    for kind in [Kind::Allocate, Kind::Discard] {
        let body = [far.to_le_bytes(), (2 * BLOCK_BYTES).to_le_bytes()].concat();
        let bytes = with_body(kind, &body);
        let found = crate::receivers::receive(State::Joining, &bytes);
        assert_eq!(found, Err(Violation::Range), "{kind:?}");
    }
    for (kind, at) in [(Kind::Pages, 0), (Kind::Copy, 0), (Kind::Log, 8)] {
        let bytes = with_body(kind, &over(body(kind), at, &far.to_le_bytes()));
        let found = crate::receivers::receive(State::Joining, &bytes);
        assert_eq!(found, Err(Violation::Range), "{kind:?}");
    }
    assert!(Lsn(far) > LSN_MAX);
}

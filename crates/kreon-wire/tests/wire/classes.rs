//! All classes of violations x all kinds of packets x all states of receivers.

use std::collections::BTreeMap;

use kreon_wire::*;

use crate::receivers::receive;
use crate::samples::sample;
use crate::wrong::wrong;

/// Those that are found before the kind is known.
const BEFORE_KIND: [Violation; 4] = [
    Violation::Short,
    Violation::Magic,
    Violation::Version,
    Violation::UnknownKind,
];

/// Those that the link finds, whatever the state of the receiver.
const OF_LINK: [Violation; 8] = [
    Violation::ReservedBits,
    Violation::TooLong,
    Violation::Length,
    Violation::GroupMisplaced,
    Violation::TermMisplaced,
    Violation::Cut,
    Violation::Excess,
    Violation::Checksum,
];

/// What the receiver must say of a packet of this kind with only `class` wrong.
fn expected(state: State, kind: Kind, class: Violation) -> Violation {
    if BEFORE_KIND.contains(&class) {
        return class;
    }
    if !state.role().allows(kind) {
        return Violation::KindForRole;
    }
    let is_found_first = match class {
        Violation::OtherGroup | Violation::OtherTerm => state.role() == Role::PeerStream,
        // A number that is missing or needless stands in the header; one out of order needs the stream.
        Violation::Number => !State::Joining.allows(kind),
        _ => OF_LINK.contains(&class),
    };
    match is_found_first || state.allows(kind) {
        true => class,
        false => Violation::KindForState,
    }
}

/// Refusals are taken wherever they come from: whose they are is for the receiver to see.
fn is_left_to_receiver(state: State, kind: Kind, class: Violation) -> bool {
    let of_stream = matches!(class, Violation::OtherGroup | Violation::OtherTerm);
    of_stream && kind == Kind::Refused && state == State::Shipping
}

#[test]
fn every_class_is_told_as_itself_for_every_kind_in_every_state() {
    let mut met: BTreeMap<(usize, &str), u32> = BTreeMap::new();
    let mut tried = 0;
    for state in State::ALL {
        for kind in Kind::ALL {
            for class in Violation::ALL {
                let Some(bytes) = wrong(kind, class, state.role()) else {
                    continue;
                };
                if is_left_to_receiver(state, kind, class) {
                    continue;
                }
                let expected = expected(state, kind, class);
                let found = receive(state, &bytes);
                assert_eq!(
                    found,
                    Err(expected),
                    "{kind:?} with {class:?} wrong, {state:?}"
                );
                tried += 1;
                let role = ["before proof", "client", "peer"][match state.role() {
                    Role::BeforeProof => 0,
                    Role::Client => 1,
                    Role::PeerStream | Role::PeerControl => 2,
                }];
                *met.entry((expected.index(), role)).or_default() += 1;
            }
        }
    }
    for class in Violation::ALL {
        let times = met.get(&(class.index(), "peer")).copied();
        assert!(times.unwrap_or_default() > 0, "{class} was never met");
    }
    let everywhere = [
        Violation::KindForRole,
        Violation::KindForState,
        Violation::Number,
        Violation::FieldBits,
        Violation::FieldValue,
    ];
    for class in BEFORE_KIND.into_iter().chain(OF_LINK).chain(everywhere) {
        for role in ["before proof", "client"] {
            let times = met.get(&(class.index(), role));
            assert!(times.is_some(), "{class} was never met {role}");
        }
    }
    assert!(tried > 3000, "{tried}");
}

#[test]
fn a_right_packet_is_taken_exactly_where_its_kind_is_allowed() {
    for state in State::ALL {
        for kind in Kind::ALL {
            let expected = match (state.role().allows(kind), state.allows(kind)) {
                (_, true) => Ok(()),
                (true, false) => Err(Violation::KindForState),
                (false, false) => Err(Violation::KindForRole),
            };
            assert_eq!(
                receive(state, &sample(kind)),
                expected,
                "{kind:?} {state:?}"
            );
        }
    }
}

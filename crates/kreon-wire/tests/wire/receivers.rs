//! What a server does with the bytes of one packet, in each of its states.

use kreon_base::Lsn;
use kreon_wire::*;

use crate::samples::{GROUP, TERM, VOLUME_BYTES, packet, room};

/// Takes the packet as the first of its stream or connection.
pub fn receive(state: State, bytes: &[u8]) -> Result<(), Violation> {
    let frame = Frame::open(bytes, state.role())?;
    match state {
        State::Following | State::Joining | State::Sealed => inlet(state).admit(&frame).map(drop),
        State::Shipping if frame.header().kind != Kind::Refused => outlet().admit(&frame).map(drop),
        _ => {
            state.check(frame.header().kind)?;
            match Packet::decode(&frame)? {
                Packet::Request(_) => Request::decode(&frame).map(drop),
                Packet::Reply(_) => Reply::decode(&frame).map(drop),
                _ => Ok(()),
            }
        }
    }
}

/// The end of a stream whose next packet is number 1.
fn inlet(state: State) -> Inlet {
    let mut inlet = Inlet::joining(GROUP, TERM, VOLUME_BYTES, room());
    if state != State::Joining {
        inlet = Inlet::following(GROUP, TERM, VOLUME_BYTES, room());
    }
    if state == State::Sealed {
        inlet.seal();
    }
    inlet
}

/// The other end of a stream on which the sample's answer may come.
fn outlet() -> Outlet {
    let mut outlet = Outlet::new(GROUP, TERM, Lsn(0), Room::default());
    for kind in [Kind::Log, Kind::Grow, Kind::Flush] {
        let Packet::Stream(sent) = packet(kind) else {
            unreachable!("{kind:?} is a packet of streams")
        };
        outlet.number(&sent);
    }
    outlet
}

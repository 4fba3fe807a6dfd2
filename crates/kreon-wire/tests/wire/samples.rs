//! One valid packet of each kind.

use kreon_base::{Epoch, Incarnation, Lsn, SEGMENT_BYTES};
use kreon_format::StoreId;
use kreon_wire::*;

pub const GROUP: GroupId = GroupId(5);
pub const TERM: Term = Term(7);
pub const VOLUME_BYTES: u64 = 4 * SEGMENT_BYTES;

pub const FLUSH: FlushNumber = FlushNumber(6);

/// Data of the sample with the most of it: what the receivers grant of a class.
pub const DATA_BYTES: u64 = 4096;

static DATA: [u8; DATA_BYTES as usize] = [0x5a; DATA_BYTES as usize];

/// The body of a scan of the table `c` from `k` on, and that of a page with one entry.
static SCAN: &[u8] =
    b"\x04\0\x01\x01\0\0\0\0\x09\0\0\0\0\0\0\0\x10\0\0\0\x20\0\0\0\x01\0\0\0\0\0\0\0\x01\0ck";
static PAGE: &[u8] = b"\x05\0\0\0\x01\0\0\0\x09\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0kvv";

pub fn member(server: u32) -> Member {
    Member {
        server: ServerId(server),
        process: ProcessId([server as u8; 16]),
    }
}

pub fn range(table: &str, start: &[u8], end: Option<&[u8]>) -> KeyRange {
    KeyRange {
        table: table.to_owned(),
        start: start.to_vec(),
        end: end.map(<[u8]>::to_vec),
    }
}

pub fn config() -> GroupConfig {
    GroupConfig {
        group: GROUP,
        term: TERM,
        loss_accepted: false,
        loss_term: Term(2),
        all_needed: true,
        min_in_sync: 2,
        primary: Some(member(3)),
        in_sync: vec![member(1), member(3)],
        members: [1, 2, 3].map(ServerId).into(),
        ranges: vec![
            range("cities", b"", Some(b"m")),
            range("cities", b"t", None),
            range("streets", b"", None),
        ],
    }
}

pub fn extent() -> Extent {
    Extent {
        slot: Slot {
            incarnation: Incarnation(6),
            epoch: Epoch(900),
        },
        log_end: Lsn(1 << 30),
    }
}

pub fn room() -> Room {
    Room {
        log: GrantBytes(DATA_BYTES),
        pages: GrantBytes(DATA_BYTES),
        space: GrantBytes(64 << 20),
    }
}

pub fn progress() -> Progress {
    Progress {
        received: StreamNumber(3),
        written: StreamNumber(2),
        flushed: FLUSH,
        log_durable: Lsn(100),
        room: room(),
    }
}

pub fn hello() -> Hello<'static> {
    Hello {
        role: Role::PeerStream,
        keyed: true,
        sender: member(2),
        challenge: [9; 32],
        cluster: "prod",
    }
}

fn open() -> Open {
    Open {
        store: StoreId(0x0123_4567),
        volume_bytes: VOLUME_BYTES,
        format: 4,
        config: config(),
    }
}

fn stream(kind: Kind) -> StreamPacket<'static> {
    match kind {
        Kind::Log => StreamPacket::Log {
            lsn: Lsn(4096),
            offset: SEGMENT_BYTES + 8192,
            bytes: &DATA[..64],
        },
        Kind::Pages => StreamPacket::Pages {
            offset: 8192,
            bytes: &DATA,
        },
        Kind::Grow => StreamPacket::Grow {
            len_bytes: VOLUME_BYTES + SEGMENT_BYTES,
        },
        Kind::Allocate => StreamPacket::Allocate {
            offset: SEGMENT_BYTES,
            len_bytes: SEGMENT_BYTES,
        },
        Kind::Discard => StreamPacket::Discard {
            offset: SEGMENT_BYTES,
            len_bytes: SEGMENT_BYTES,
        },
        Kind::Flush => StreamPacket::Flush {
            number: FLUSH,
            log_upto: Lsn(4160),
        },
        Kind::Copy => StreamPacket::Copy {
            offset: VOLUME_BYTES - 8192,
            bytes: &DATA,
        },
        _ => StreamPacket::Complete,
    }
}

fn control(kind: Kind) -> Control {
    match kind {
        Kind::Open => Control::Open(open()),
        Kind::Opened => Control::Opened {
            volume_bytes: VOLUME_BYTES,
            log_durable: Lsn(4096),
            room: room(),
        },
        Kind::Beat => Control::Beat,
        Kind::Beaten => Control::Beaten { free_bytes: 12 },
        Kind::Seal => Control::Seal,
        Kind::Sealed => Control::Sealed {
            process: member(3).process,
            extent: extent(),
        },
        Kind::Equalise => Control::Equalise(Equalise {
            extent: extent(),
            superblocks: Some(Superblocks::of(&[0x11; 4 * 4096]).unwrap()),
        }),
        Kind::Equal => Control::Equal { extent: extent() },
        Kind::Attach => Control::Attach(Attach {
            open: open(),
            backed_bytes: SEGMENT_BYTES,
        }),
        Kind::Attached => Control::Attached {
            free_bytes: 1 << 40,
            room: room(),
        },
        Kind::Look => Control::Look,
        Kind::Status => Control::Status,
        Kind::Standing => Control::Standing(Standing {
            stage: Stage::Serving,
            extent: extent(),
            landed: Lsn(77),
            durable: Lsn(70),
            free_bytes: 1 << 33,
        }),
        _ => Control::Refused(Refused {
            reason: Reason::LowerTerm,
            kind: Kind::Beat,
            term: TERM,
        }),
    }
}

/// The packet of this kind.
pub fn packet(kind: Kind) -> Packet<'static> {
    use Kind::*;
    match kind {
        Hello => Packet::Hello(hello()),
        Proof => Packet::Proof(kreon_wire::Proof { code: [3; 32] }),
        Log | Pages | Grow | Allocate | Discard | Flush | Copy | Complete => {
            Packet::Stream(stream(kind))
        }
        Progress => Packet::Progress(progress()),
        Request => Packet::Request(SCAN),
        Reply => Packet::Reply(PAGE),
        _ => Packet::Control(control(kind)),
    }
}

/// Where it belongs: it is the first of its stream.
pub fn address(kind: Kind) -> Address {
    let to = Address {
        group: GROUP,
        term: TERM,
        number: 1,
    };
    to.fitting(kind)
}

/// Its bytes.
pub fn sample(kind: Kind) -> Vec<u8> {
    packet(kind).encode(&address(kind))
}

/// The role of a link on which it may come in.
pub fn role_of(kind: Kind) -> Role {
    let mut roles = Role::ALL.into_iter();
    roles.find(|role| role.allows(kind)).unwrap()
}

/// `bytes` with a right checksum and the right length in the header.
pub fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body_bytes = (bytes.len() - limits::HEADER_BYTES) as u32;
    bytes[8..12].copy_from_slice(&body_bytes.to_le_bytes());
    checksummed(bytes)
}

/// `bytes` with a right checksum.
pub fn checksummed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[12..16].fill(0);
    let checksum = kreon_base::Checksum::of(&bytes);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

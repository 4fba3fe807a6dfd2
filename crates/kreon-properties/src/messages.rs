//! Valid messages of the cluster.

use arbitrary::{Result, Unstructured};
use kreon_base::{Epoch, Incarnation, Lsn, SEGMENT_BYTES};
use kreon_format::{EPOCH_MAX, StoreId};
use kreon_wire::limits::{BLOCK_BYTES, VOLUME_BYTES_MAX};
use kreon_wire::*;

static DATA: [u8; 64 << 10] = [0x5a; 64 << 10];

/// Any packet of a stream that lies in a volume of some length.
pub fn any_stream_packet(u: &mut Unstructured<'_>) -> Result<StreamPacket<'static>> {
    let first = u.int_in_range(0..=VOLUME_BYTES_MAX / BLOCK_BYTES - 16)?;
    let offset = *u.choose(&[0, 1, 16, 512, first])? * BLOCK_BYTES;
    let blocks = u.int_in_range(1..=16_u64)?;
    let bytes = &DATA[..(blocks * BLOCK_BYTES) as usize];
    let len_bytes = blocks * BLOCK_BYTES;
    Ok(match u.int_in_range(0..=7)? {
        0 => StreamPacket::Log {
            lsn: any_lsn(u)?,
            offset: offset / SEGMENT_BYTES * SEGMENT_BYTES + 8 * blocks,
            bytes: &DATA[..8 * u.int_in_range(1..=600_usize)?],
        },
        1 => StreamPacket::Pages { offset, bytes },
        2 => StreamPacket::Grow {
            len_bytes: len_bytes + offset,
        },
        3 => StreamPacket::Allocate { offset, len_bytes },
        4 => StreamPacket::Discard { offset, len_bytes },
        5 => StreamPacket::Flush {
            number: FlushNumber(u.int_in_range(1..=9)?),
            log_upto: any_lsn(u)?,
        },
        6 => StreamPacket::Copy { offset, bytes },
        _ => StreamPacket::Complete,
    })
}

/// Any control message about the group and the term of `to`.
pub fn any_control(u: &mut Unstructured<'_>, to: &Address) -> Result<Control> {
    Ok(match u.int_in_range(0..=13)? {
        0 => Control::Refused(Refused {
            reason: *u.choose(Reason::ALL)?,
            kind: *u.choose(&Kind::ALL)?,
            term: Term(u.int_in_range(0..=Term::MAX.0)?),
        }),
        1 => Control::Open(any_open(u, to)?),
        2 => Control::Opened {
            volume_bytes: any_volume_bytes(u)?,
            log_durable: any_lsn(u)?,
            room: any_room(u)?,
        },
        3 => Control::Beat,
        4 => Control::Beaten {
            free_bytes: u.arbitrary()?,
        },
        5 => Control::Seal,
        6 => Control::Sealed {
            process: ProcessId(u.arbitrary()?),
            extent: any_extent(u)?,
        },
        7 => Control::Equalise(Equalise {
            extent: any_extent(u)?,
            superblocks: match u.arbitrary()? {
                true => Superblocks::of(&DATA[..16384]).ok(),
                false => None,
            },
        }),
        8 => Control::Equal {
            extent: any_extent(u)?,
        },
        9 => any_attach(u, to)?,
        10 => Control::Attached {
            free_bytes: u.arbitrary()?,
            room: any_room(u)?,
        },
        11 => Control::Look,
        12 => Control::Status,
        _ => Control::Standing(Standing {
            stage: *u.choose(Stage::ALL)?,
            extent: any_extent(u)?,
            landed: any_lsn(u)?,
            durable: any_lsn(u)?,
            free_bytes: u.arbitrary()?,
        }),
    })
}

fn any_attach(u: &mut Unstructured<'_>, to: &Address) -> Result<Control> {
    let open = any_open(u, to)?;
    let backed_bytes = open.volume_bytes.min(any_volume_bytes(u)?);
    Ok(Control::Attach(Attach { open, backed_bytes }))
}

fn any_open(u: &mut Unstructured<'_>, to: &Address) -> Result<Open> {
    Ok(Open {
        store: StoreId(u.arbitrary()?),
        volume_bytes: any_volume_bytes(u)?,
        format: u.int_in_range(1..=255)?,
        config: any_config(u, to.group, to.term)?,
    })
}

fn any_volume_bytes(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(u.int_in_range(0..=VOLUME_BYTES_MAX / BLOCK_BYTES)? * BLOCK_BYTES)
}

fn any_lsn(u: &mut Unstructured<'_>) -> Result<Lsn> {
    u.int_in_range(0..=LSN_MAX.0).map(Lsn)
}

/// Any credit.
pub fn any_room(u: &mut Unstructured<'_>) -> Result<Room> {
    Ok(Room {
        log: GrantBytes(u.arbitrary()?),
        pages: GrantBytes(u.arbitrary()?),
        space: GrantBytes(u.arbitrary()?),
    })
}

/// Any answer of a follower.
pub fn any_progress(u: &mut Unstructured<'_>) -> Result<Progress> {
    let received = u.int_in_range(0..=20)?;
    Ok(Progress {
        received: StreamNumber(received),
        written: StreamNumber(u.int_in_range(0..=received)?),
        flushed: FlushNumber(u.int_in_range(0..=9)?),
        log_durable: any_lsn(u)?,
        room: any_room(u)?,
    })
}

fn any_extent(u: &mut Unstructured<'_>) -> Result<Extent> {
    Ok(Extent {
        slot: Slot {
            incarnation: Incarnation(u.int_in_range(0..=Term::MAX.0)?),
            epoch: Epoch(u.int_in_range(0..=EPOCH_MAX)?),
        },
        log_end: any_lsn(u)?,
    })
}

/// Any configuration of a group.
pub fn any_config(u: &mut Unstructured<'_>, group: GroupId, term: Term) -> Result<GroupConfig> {
    let (mut members, mut in_sync) = (Vec::new(), Vec::new());
    for server in 1..=u.int_in_range(1..=4)? {
        members.push(ServerId(server));
        if u.arbitrary()? {
            in_sync.push(Member {
                server: ServerId(server),
                process: ProcessId(u.arbitrary()?),
            });
        }
    }
    let primary = match in_sync.is_empty() || u.arbitrary()? {
        true => None,
        false => Some(*u.choose(&in_sync)?),
    };
    Ok(GroupConfig {
        group,
        term,
        loss_accepted: u.arbitrary()?,
        loss_term: Term(u.int_in_range(0..=term.0)?),
        all_needed: u.arbitrary()?,
        min_in_sync: u.int_in_range(1..=16)?,
        primary,
        in_sync,
        members,
        ranges: any_ranges(u)?,
    })
}

fn any_ranges(u: &mut Unstructured<'_>) -> Result<Vec<KeyRange>> {
    let mut ranges = Vec::new();
    for table in ["cities", "streets"] {
        let mut start = Vec::new();
        for _ in 0..u.int_in_range(0..=2)? {
            let end = [&start[..], &[1], u.bytes(2)?].concat();
            ranges.push(KeyRange {
                table: table.to_owned(),
                start: std::mem::replace(&mut start, end.clone()),
                end: Some(end),
            });
        }
        if u.arbitrary()? {
            let table = table.to_owned();
            let end = None;
            ranges.push(KeyRange { table, start, end });
        }
    }
    Ok(ranges)
}

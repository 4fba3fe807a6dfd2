//! Everything that can be encoded is decoded as what it was.

use kreon_base::{Epoch, Incarnation, Lsn, SEGMENT_BYTES};
use kreon_format::{EPOCH_MAX, StoreId};
use kreon_wire::limits::VOLUME_BYTES_MAX;
use kreon_wire::*;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use crate::samples::role_of;

fn same_every_time() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x7769_7265),
        ..ProptestConfig::default()
    }
}

const BLOCKS: u64 = VOLUME_BYTES_MAX / 4096;

fn any_lsn() -> impl Strategy<Value = Lsn> {
    (0..=LSN_MAX.0).prop_map(Lsn)
}

/// Offset and length in blocks, within the longest volume.
fn any_blocks() -> impl Strategy<Value = (u64, u64)> {
    (0..BLOCKS).prop_flat_map(|first| {
        (
            Just(first * 4096),
            (1..=BLOCKS - first).prop_map(|n| n * 4096),
        )
    })
}

fn any_room() -> impl Strategy<Value = Room> {
    any::<[u64; 3]>().prop_map(|[log, pages, space]| Room {
        log: GrantBytes(log),
        pages: GrantBytes(pages),
        space: GrantBytes(space),
    })
}

fn any_extent() -> impl Strategy<Value = Extent> {
    (0..=Term::MAX.0, 0..=EPOCH_MAX, any_lsn()).prop_map(|(incarnation, epoch, log_end)| Extent {
        slot: Slot {
            incarnation: Incarnation(incarnation),
            epoch: Epoch(epoch),
        },
        log_end,
    })
}

fn any_process() -> impl Strategy<Value = ProcessId> {
    any::<[u8; 16]>().prop_map(ProcessId)
}

fn any_key() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..20)
}

/// Ranges between all borders but the odd ones, of a few tables.
fn any_ranges() -> impl Strategy<Value = Vec<KeyRange>> {
    btree_map(
        "[a-zé]{1,8}",
        (btree_set(any_key(), 1..6), any::<bool>()),
        0..4,
    )
    .prop_map(|tables| {
        let ranges = tables.into_iter().flat_map(|(table, (borders, open))| {
            let borders: Vec<_> = borders.into_iter().collect();
            let pairs: Vec<_> = borders
                .chunks(2)
                .filter_map(|pair| match pair {
                    [start, end] => Some((start.clone(), Some(end.clone()))),
                    [start] if open => Some((start.clone(), None)),
                    _ => None,
                })
                .collect();
            pairs.into_iter().map(move |(start, end)| KeyRange {
                table: table.clone(),
                start,
                end,
            })
        });
        ranges.collect()
    })
}

fn any_config(group: GroupId, term: Term) -> impl Strategy<Value = GroupConfig> {
    let servers = btree_map(1..=u32::MAX, (any::<bool>(), any_process()), 1..=16);
    (
        servers,
        any::<Option<u8>>(),
        any::<[bool; 2]>(),
        1..=16_u8,
        any_ranges(),
    )
        .prop_map(
            move |(servers, primary, [loss_accepted, all_needed], min_in_sync, ranges)| {
                let in_sync: Vec<_> = servers
                    .iter()
                    .filter(|(_, (is_in, _))| *is_in)
                    .map(|(server, (_, process))| Member {
                        server: ServerId(*server),
                        process: *process,
                    })
                    .collect();
                let chosen = |place: u8| in_sync.get(usize::from(place) % in_sync.len().max(1));
                GroupConfig {
                    group,
                    term,
                    loss_accepted,
                    loss_term: Term(term.0 / 2),
                    all_needed,
                    min_in_sync,
                    primary: primary.and_then(chosen).copied(),
                    members: servers.keys().copied().map(ServerId).collect(),
                    in_sync,
                    ranges,
                }
            },
        )
}

fn any_open(to: Address) -> impl Strategy<Value = Open> {
    let config = any_config(to.group, to.term);
    (any::<u64>(), 0..=BLOCKS, 1..=255_u8, config).prop_map(|(store, blocks, format, config)| {
        Open {
            store: StoreId(store),
            volume_bytes: blocks * 4096,
            format,
            config,
        }
    })
}

fn any_standing() -> impl Strategy<Value = Standing> {
    let stage = select(Stage::ALL);
    (stage, any_extent(), any_lsn(), any_lsn(), any::<u64>()).prop_map(
        |(stage, extent, landed, durable, free_bytes)| Standing {
            stage,
            extent,
            landed,
            durable,
            free_bytes,
        },
    )
}

fn any_refused() -> impl Strategy<Value = Refused> {
    let kind = select(&Kind::ALL[..]);
    (select(Reason::ALL), kind, 0..=Term::MAX.0).prop_map(|(reason, kind, term)| Refused {
        reason,
        kind,
        term: Term(term),
    })
}

fn any_equalise() -> impl Strategy<Value = Equalise> {
    (any_extent(), any::<Option<u8>>()).prop_map(|(extent, fill)| Equalise {
        extent,
        superblocks: fill.map(|fill| Superblocks::of(&[fill; 4 * 4096]).unwrap()),
    })
}

fn any_control(to: Address) -> impl Strategy<Value = Control> {
    prop_oneof![
        any_refused().prop_map(Control::Refused),
        any_standing().prop_map(Control::Standing),
        any_open(to).prop_map(Control::Open),
        (any_open(to), 0..=BLOCKS).prop_map(|(open, backed)| Control::Attach(Attach {
            backed_bytes: open.volume_bytes.min(backed * 4096),
            open,
        })),
        any_equalise().prop_map(Control::Equalise),
        (0..=BLOCKS, any_lsn(), any_room()).prop_map(|(blocks, log_durable, room)| {
            Control::Opened {
                volume_bytes: blocks * 4096,
                log_durable,
                room,
            }
        }),
        any::<u64>().prop_map(|free_bytes| Control::Beaten { free_bytes }),
        (any_process(), any_extent())
            .prop_map(|(process, extent)| Control::Sealed { process, extent }),
        any_extent().prop_map(|extent| Control::Equal { extent }),
        (any::<u64>(), any_room())
            .prop_map(|(free_bytes, room)| Control::Attached { free_bytes, room }),
        select(vec![
            Control::Beat,
            Control::Seal,
            Control::Look,
            Control::Status
        ]),
    ]
}

fn any_address() -> impl Strategy<Value = Address> {
    (1..=u32::MAX, 1..=Term::MAX.0, 1..=u64::MAX).prop_map(|(group, term, number)| Address {
        group: GroupId(group),
        term: Term(term),
        number,
    })
}

fn goes_round(packet: &Packet<'_>, kind: Kind, to: Address) {
    // Of the address, the packet takes the fields that it has.
    let bytes = packet.encode(&to);
    let to = to.fitting(kind);
    let frame = Frame::open(&bytes, role_of(kind)).unwrap();
    assert_eq!((frame.header().kind, frame.address()), (kind, to));
    assert_eq!(Packet::decode(&frame).as_ref(), Ok(packet));
}

/// One of the packets of a stream, from numbers.
fn stream_packet(
    kind: Kind,
    blocks: (u64, u64),
    lsn: Lsn,
    number: u64,
    data: &[u8],
) -> StreamPacket<'_> {
    let (offset, len_bytes) = blocks;
    let bytes = &data[..data.len().min(len_bytes as usize)];
    match kind {
        Kind::Log => {
            let bytes = &data[..8 * (1 + number as usize % 512)];
            let offset = offset / SEGMENT_BYTES * SEGMENT_BYTES;
            StreamPacket::Log { lsn, offset, bytes }
        }
        Kind::Pages => StreamPacket::Pages { offset, bytes },
        Kind::Copy => StreamPacket::Copy { offset, bytes },
        Kind::Grow => StreamPacket::Grow { len_bytes },
        Kind::Allocate => StreamPacket::Allocate { offset, len_bytes },
        Kind::Discard => StreamPacket::Discard { offset, len_bytes },
        Kind::Flush => StreamPacket::Flush {
            number: FlushNumber(number.max(1)),
            log_upto: lsn,
        },
        _ => StreamPacket::Complete,
    }
}

proptest! {
    #![proptest_config(same_every_time())]

    #[test]
    fn packets_of_streams_go_round(
        to in any_address(),
        blocks in any_blocks(),
        lsn in any_lsn(),
        number in any::<u64>(),
        fill in any::<u8>(),
        data_blocks in 1_usize..=16,
    ) {
        let data = vec![fill; data_blocks * 4096];
        for kind in Kind::ALL.into_iter().filter(|kind| State::Joining.allows(*kind)) {
            let packet = stream_packet(kind, blocks, lsn, number, &data);
            let encoded = packet.encode(to.group, to.term, StreamNumber(to.number));
            let parts: Vec<u8> = encoded.parts().iter().flat_map(|part| part.to_vec()).collect();
            prop_assert_eq!(parts.len(), encoded.len_bytes());
            prop_assert_eq!(&parts, &encoded.to_vec());
            goes_round(&Packet::Stream(packet), kind, to);
        }
    }

    #[test]
    fn progress_goes_round(
        to in any_address(),
        numbers in any::<[u64; 3]>(),
        log_durable in any_lsn(),
        room in any_room(),
    ) {
        let [first, second, flushed] = numbers;
        let progress = Progress {
            received: StreamNumber(first.max(second)),
            written: StreamNumber(first.min(second)),
            flushed: FlushNumber(flushed),
            log_durable,
            room,
        };
        goes_round(&Packet::Progress(progress), Kind::Progress, to);
    }

    #[test]
    fn control_messages_go_round(
        (to, control) in any_address().prop_flat_map(|to| (Just(to), any_control(to))),
    ) {
        let kind = control.kind();
        goes_round(&Packet::Control(control), kind, to);
    }

    #[test]
    fn greetings_and_requests_go_round(
        to in any_address(),
        role in select(vec![Role::PeerStream, Role::PeerControl]),
        keyed in any::<bool>(),
        process in any_process(),
        challenge in any::<[u8; 32]>(),
        cluster in "[a-zA-Z0-9 é-]{1,32}",
        body in vec(any::<u8>(), 1..200),
    ) {
        for (role, server) in [(role, ServerId(to.group.0)), (Role::Client, ServerId(0))] {
            let sender = Member { server, process };
            let hello = Hello { role, keyed, sender, challenge, cluster: &cluster };
            goes_round(&Packet::Hello(hello), Kind::Hello, to);
        }
        goes_round(&Packet::Proof(Proof { code: challenge }), Kind::Proof, to);
        goes_round(&Packet::Request(&body), Kind::Request, to);
        goes_round(&Packet::Reply(&body), Kind::Reply, to);
    }

    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..300), kind in select(&Kind::ALL[..])) {
        for role in Role::ALL {
            let _ = Frame::open(&bytes, role);
        }
        // Behind a right header.
        let whole = crate::samples::sample(kind);
        let forged = crate::samples::sealed([&whole[..limits::HEADER_BYTES], &bytes].concat());
        if let Ok(frame) = Frame::open(&forged, role_of(kind))
            && let Ok(packet) = Packet::decode(&frame)
        {
            prop_assert_eq!(packet.encode(&frame.address()), forged);
        }
        let _ = (GroupConfig::decode(&bytes), ServerNode::decode(&bytes), TableNode::decode(&bytes));
    }
}

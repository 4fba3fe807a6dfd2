//! Nodes of the coordinator.

use kreon_base::Checksum;
use kreon_wire::limits::NODE_VERSION;
use kreon_wire::*;

use crate::document::Document;
use crate::values::Value::{self, Bytes, Items, Number};
use crate::values::distinct;
use crate::wire;

fn member(salt: u8) -> Member {
    Member {
        server: ServerId(distinct(4, salt) as u32),
        process: ProcessId([salt; 16]),
    }
}

fn range(table: &str, start: &[u8], end: Option<&[u8]>) -> KeyRange {
    KeyRange {
        table: table.to_owned(),
        start: start.to_vec(),
        end: end.map(<[u8]>::to_vec),
    }
}

/// A configuration that has everything.
pub fn config() -> GroupConfig {
    GroupConfig {
        group: GroupId(distinct(4, 1) as u32),
        term: Term(distinct(6, 2)),
        loss_accepted: true,
        loss_term: Term(distinct(5, 3)),
        all_needed: true,
        min_in_sync: 2,
        primary: Some(member(4)),
        in_sync: vec![member(3), member(4)],
        members: [2, 3, 4].map(|salt| member(salt).server).into(),
        ranges: vec![
            range("cities", b"a", Some(b"mm")),
            range("streets", b"", None),
        ],
    }
}

impl Document {
    fn node(&self, heading: &str, magic: &[u8; 4], fields: &[(&str, Value)]) -> Vec<u8> {
        let preamble = [
            ("magic", Bytes(magic.to_vec())),
            ("version", Number(NODE_VERSION.into())),
            ("checksum", Number(0)),
        ];
        let mut bytes = self.assemble(heading, &[&preamble[..], fields].concat());
        let checksum = Checksum::of(&bytes);
        bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn member(&self, member: &Member) -> Vec<u8> {
        let server = ("server", Number(member.server.0.into()));
        let process = ("process", Bytes(member.process.0.to_vec()));
        self.assemble("Member", &[server, process])
    }

    fn range(&self, range: &KeyRange) -> Vec<u8> {
        let end = range.end.clone().unwrap_or_default();
        self.assemble(
            "Range",
            &[
                ("bounded", Number(range.end.is_some().into())),
                ("table length", Number(range.table.len() as u64)),
                ("table", Bytes(range.table.as_bytes().to_vec())),
                ("start length", Number(range.start.len() as u64)),
                ("start", Bytes(range.start.clone())),
                ("end length", Number(end.len() as u64)),
                ("end", Bytes(end)),
            ],
        )
    }

    fn text(&self, text: &str) -> Vec<u8> {
        let length = ("length", Number(text.len() as u64));
        let bytes = ("text", Bytes(text.as_bytes().to_vec()));
        self.assemble("Text", &[length, bytes])
    }

    fn group(&self, config: &GroupConfig) -> Vec<u8> {
        let primary = config.primary.iter().flat_map(|member| self.member(member));
        let servers = config.members.iter();
        let set = config.in_sync.iter().flat_map(|member| self.member(member));
        let ranges = config.ranges.iter().flat_map(|range| self.range(range));
        self.node(
            "Group node",
            b"KrnG",
            &[
                ("group", Number(config.group.0.into())),
                ("term", Number(config.term.0)),
                ("loss", Number(config.loss_accepted.into())),
                ("least", Number(config.min_in_sync.into())),
                ("led", Number(config.primary.is_some().into())),
                ("whole", Number(config.all_needed.into())),
                ("member count", Number(config.members.len() as u64)),
                ("set count", Number(config.in_sync.len() as u64)),
                ("range count", Number(config.ranges.len() as u64)),
                ("loss term", Number(config.loss_term.0)),
                ("primary", Bytes(primary.collect())),
                (
                    "members",
                    Items(
                        servers
                            .map(|server| server.0.to_le_bytes().to_vec())
                            .collect(),
                    ),
                ),
                ("set", Bytes(set.collect())),
                ("ranges", Bytes(ranges.collect())),
            ],
        )
    }
}

#[test]
fn the_configuration_of_a_group_stands_as_told() {
    let document = wire();
    let led = config();
    let mut leaderless = config();
    leaderless.primary = None;
    leaderless.in_sync.clear();
    leaderless.all_needed = false;
    for config in [led, leaderless] {
        assert_eq!(config.check(), Ok(()));
        assert_eq!(config.encode(), document.group(&config));
    }
}

#[test]
fn the_other_nodes_stand_as_told() {
    let document = wire();
    let server = ServerNode {
        server: ServerId(distinct(4, 1) as u32),
        peer_address: "10.0.0.3:7000".to_owned(),
        client_address: "10.0.0.3:70".to_owned(),
        domain: "rack".to_owned(),
    };
    let texts = [&server.peer_address, &server.client_address, &server.domain];
    let texts = texts.iter().flat_map(|text| document.text(text)).collect();
    let fields = [
        ("server", Number(server.server.0.into())),
        ("texts", Bytes(texts)),
    ];
    let told = document.node("Server node", b"KrnS", &fields);
    assert_eq!(server.encode(), told);

    let version = distinct(4, 5) as u32;
    let fields = [("cluster version", Number(version.into()))];
    let told = document.node("Format node", b"KrnF", &fields);
    assert_eq!(FormatNode { version }.encode(), told);
    let fields = [("primaries", Number(version.into()))];
    let told = document.node("Limits node", b"KrnL", &fields);
    let limits = LimitsNode {
        primaries_max: version,
    };
    assert_eq!(limits.encode(), told);
}

#[test]
fn a_table_stands_as_told() {
    let document = wire();
    let group = |salt| GroupId(distinct(4, salt) as u32);
    let table = TableNode {
        table: "cities".to_owned(),
        creating: true,
        ranges: vec![(Vec::new(), group(1)), (b"mm".to_vec(), group(2))],
    };
    let ranges = table.ranges.iter().flat_map(|(start, group)| {
        document.assemble(
            "Range of a table",
            &[
                ("group", Number(group.0.into())),
                ("start length", Number(start.len() as u64)),
                ("start", Bytes(start.clone())),
            ],
        )
    });
    let fields = [
        ("partial", Number(1)),
        ("range count", Number(table.ranges.len() as u64)),
        ("table", Bytes(document.text(&table.table))),
        ("ranges", Bytes(ranges.collect())),
    ];
    let told = document.node("Table node", b"KrnT", &fields);
    assert_eq!(table.encode(), told);
}

//! The catalogue stream and its records.

use std::num::NonZeroU64;

use kreon_base::{
    Codec, Epoch, Incarnation, LogId, Lsn, PageNo, RegionId, RegionOptions, SegmentId,
};
use kreon_format::*;

use crate::document::Document;
use crate::pages::pointer;
use crate::values::Value::{Bytes, Items, Number};
use crate::values::distinct;

/// The version of the stream that this build writes.
const STREAM_VERSION: u8 = 3;

fn tree() -> TreeRecord {
    TreeRecord {
        root: Some(pointer(1)),
        height: 3,
        entries: distinct(8, 4),
        leaf_pages: distinct(8, 5),
        index_pages: distinct(8, 6),
    }
}

/// Options with bytes that all differ.
pub fn options() -> RegionOptions {
    RegionOptions {
        compression: Codec::Lz4,
        ttl_ms: NonZeroU64::new(distinct(6, 3)),
        inline_value_bytes_max: Some(0x0037),
        growth_factor: Some(11),
    }
}

fn regions() -> Vec<RegionRecord> {
    let region = |id: u32, name: &str, options, levels| RegionRecord {
        id: RegionId(id),
        name: name.to_owned(),
        options,
        log: LogId(distinct(2, 8) as u16),
        levels,
    };
    let first = region(
        distinct(4, 1) as u32,
        &"n".repeat(250),
        options(),
        vec![tree(), TreeRecord::default()],
    );
    vec![
        first,
        region(
            distinct(4, 2) as u32,
            "",
            RegionOptions::DEFAULT,
            Vec::new(),
        ),
    ]
}

fn part(start: u64, end: u64) -> ImagePart {
    ImagePart {
        start: Lsn(start),
        end: Lsn(end),
        needed: Lsn(end + 7),
        trees: vec![(RegionId(distinct(4, 3) as u32), tree())],
        pages: vec![PageRun {
            first: PageNo(distinct(6, 2)),
            count: distinct(4, 4) as u32,
        }],
    }
}

/// Bit 15 of the number of a log.
const IS_FOLLOWED: u16 = 1 << 15;

fn log() -> LogRecord {
    // Positions fill seven bytes: a reader rejects higher ones.
    let lsn = |salt| distinct(7, salt);
    LogRecord {
        id: LogId(distinct(2, 1) as u16 & !IS_FOLLOWED),
        followed_from: Some(Lsn(lsn(16))),
        marker: Lsn(lsn(2)),
        incarnation: Incarnation(distinct(8, 3)),
        resumes: vec![LogResume {
            end: Lsn(lsn(4)),
            resume: Lsn(lsn(5)),
            incarnation: Incarnation(distinct(8, 6)),
        }],
        durable: Lsn(lsn(7)),
        open: Some(OpenSegment {
            segment: SegmentId(distinct(4, 8) as u32),
            sequence: distinct(5, 9),
        }),
        next: Some(SegmentId(distinct(4, 10) as u32)),
        image: vec![part(lsn(1), lsn(11)), part(lsn(11), lsn(12))],
    }
}

fn catalogue() -> Catalogue {
    Catalogue {
        next_region: RegionId(distinct(4, 15) as u32),
        regions: regions(),
        region_pages: vec![pointer(5), pointer(8)],
        logs: vec![
            log(),
            LogRecord {
                followed_from: None,
                open: None,
                next: None,
                image: Vec::new(),
                ..log()
            },
        ],
        groups: [0, 1].map(group).into(),
    }
}

fn group(copy: u8) -> GroupPointer {
    GroupPointer {
        copy,
        epoch: Epoch(distinct(6, copy + 1)),
        checksum: distinct(4, copy + 2) as u32,
    }
}

impl Document {
    fn tree(&self, tree: &TreeRecord) -> Vec<u8> {
        let Some(root) = tree.root else {
            // The height is the only field.
            return vec![0];
        };
        self.assemble(
            "Tree record",
            &[
                ("height", Number(tree.height.into())),
                ("root", Bytes(self.pointer(&root))),
                ("entries", Number(tree.entries)),
                ("leaf pages", Number(tree.leaf_pages)),
                ("index pages", Number(tree.index_pages)),
            ],
        )
    }

    /// Options of a region; no bytes if it has none.
    pub fn options(&self, options: &RegionOptions) -> Vec<u8> {
        if options.is_default() {
            return Vec::new();
        }
        let limit = options.inline_value_bytes_max.unwrap_or(u16::MAX);
        self.assemble(
            "Region options",
            &[
                ("codec", Number(options.compression.code().into())),
                (
                    "growth factor",
                    Number(options.growth_factor.unwrap_or(0).into()),
                ),
                ("inline limit", Number(limit.into())),
                ("TTL", Number(options.ttl_ms.map_or(0, NonZeroU64::get))),
            ],
        )
    }

    fn region(&self, region: &RegionRecord) -> Vec<u8> {
        let trees = region.levels.iter().flat_map(|tree| self.tree(tree));
        let has_options = u64::from(!region.options.is_default());
        let count = region.levels.len() as u64 | has_options << 7;
        self.assemble(
            "Region record",
            &[
                ("region", Number(region.id.0.into())),
                ("name length", Number(region.name.len() as u64)),
                ("name", Bytes(region.name.as_bytes().to_vec())),
                ("log", Number(region.log.0.into())),
                ("tree count", Number(count)),
                ("options", Bytes(self.options(&region.options))),
                ("trees", Bytes(trees.collect())),
            ],
        )
    }

    fn resume(&self, resume: &LogResume) -> Vec<u8> {
        self.assemble(
            "Resume",
            &[
                ("end", Number(resume.end.0)),
                ("resume", Number(resume.resume.0)),
                ("incarnation", Number(resume.incarnation.0)),
            ],
        )
    }

    fn part(&self, part: &ImagePart) -> Vec<u8> {
        let tree = |(region, tree): &(RegionId, TreeRecord)| {
            let fields = [
                ("region", Number(region.0.into())),
                ("tree", Bytes(self.tree(tree))),
            ];
            self.assemble("Image tree", &fields)
        };
        let run = |run: &PageRun| {
            let fields = [
                ("first", Number(run.first.0)),
                ("count", Number(run.count.into())),
            ];
            self.assemble("Page run", &fields)
        };
        self.assemble(
            "Image part",
            &[
                ("start", Number(part.start.0)),
                ("end", Number(part.end.0)),
                ("needed", Number(part.needed.0)),
                ("tree count", Number(part.trees.len() as u64)),
                ("trees", Bytes(part.trees.iter().flat_map(tree).collect())),
                ("run count", Number(part.pages.len() as u64)),
                ("runs", Items(part.pages.iter().map(run).collect())),
            ],
        )
    }

    fn log(&self, log: &LogRecord, version: u8) -> Vec<u8> {
        let open = log
            .open
            .map(|open| (open.segment.0.to_le_bytes(), open.sequence.to_le_bytes()));
        let (segment, sequence) = open.map_or_else(Default::default, |(segment, sequence)| {
            (segment.to_vec(), sequence.to_vec())
        });
        let next = log.next.map(|next| next.0.to_le_bytes().to_vec());
        let resumes = log.resumes.iter().map(|resume| self.resume(resume));
        let is_followed = log.followed_from.map_or(0, |_| IS_FOLLOWED);
        let from = log.followed_from.map(|from| from.0.to_le_bytes().to_vec());
        let mut fields = vec![
            ("log", Number((log.id.0 | is_followed).into())),
            ("followed from", Bytes(from.unwrap_or_default())),
            ("marker", Number(log.marker.0)),
            ("incarnation", Number(log.incarnation.0)),
            ("resume count", Number(log.resumes.len() as u64)),
            ("resumes", Items(resumes.collect())),
            ("durable", Number(log.durable.0)),
            ("has open", Number(log.open.is_some().into())),
            ("open segment", Bytes(segment)),
            ("open sequence", Bytes(sequence)),
            ("has next", Number(log.next.is_some().into())),
            ("next segment", Bytes(next.unwrap_or_default())),
        ];
        if version >= 2 {
            let parts = log.image.iter().flat_map(|part| self.part(part));
            fields.push(("part count", Number(log.image.len() as u64)));
            fields.push(("parts", Bytes(parts.collect())));
        }
        self.assemble_version("Log record", version, &fields)
    }

    fn group(&self, group: &GroupPointer) -> Vec<u8> {
        self.assemble(
            "Group pointer",
            &[
                ("copy", Number(group.copy.into())),
                ("epoch", Number(group.epoch.0)),
                ("checksum", Number(group.checksum.into())),
            ],
        )
    }

    fn stream(&self, catalogue: &Catalogue, version: u8) -> Vec<u8> {
        let regions = catalogue
            .regions
            .iter()
            .flat_map(|region| self.region(region));
        let logs = catalogue.logs.iter().flat_map(|log| self.log(log, version));
        let groups = catalogue.groups.iter().map(|group| self.group(group));
        let mut fields = vec![
            ("next region", Number(catalogue.next_region.0.into())),
            ("region count", Number(catalogue.regions.len() as u64)),
            ("regions", Bytes(regions.collect())),
            ("log count", Number(catalogue.logs.len() as u64)),
            ("logs", Bytes(logs.collect())),
            ("group count", Number(catalogue.groups.len() as u64)),
            ("groups", Items(groups.collect())),
        ];
        if version >= 2 {
            fields.push(("mark", Number(u32::MAX.into())));
            fields.push(("version", Number(version.into())));
        }
        if version >= 3 {
            let pages = catalogue.region_pages.iter().map(|page| self.pointer(page));
            fields.push((
                "region page count",
                Number(catalogue.region_pages.len() as u64),
            ));
            fields.push(("region pages", Items(pages.collect())));
        }
        self.assemble_version("Catalogue stream", version, &fields)
    }
}

#[test]
fn the_catalogue_stream_is_as_the_document_says() {
    let document = Document::read();
    let stream = catalogue().encode();
    assert_eq!(stream, document.stream(&catalogue(), STREAM_VERSION));
    let since = document.at("Catalogue stream").rows.iter();
    let newest = since.map(|row| row["since"].clone()).max();
    assert_eq!(newest, Some(STREAM_VERSION.to_string()));
    // The record of a tree without root has only its first field.
    assert_eq!(document.at("Tree record").rows[0]["field"], "height");
    assert_eq!(document.at("Tree record").rows[0]["bytes"], "1");
}

#[test]
fn streams_of_older_versions_read_back_as_the_document_says() {
    let document = Document::read();
    let mut expected = catalogue();
    assert_eq!(
        Catalogue::decode(&document.stream(&expected, 3)).unwrap(),
        expected
    );
    expected.region_pages.clear();
    assert_eq!(
        Catalogue::decode(&document.stream(&expected, 2)).unwrap(),
        expected
    );
    for log in &mut expected.logs {
        log.image.clear();
    }
    assert_eq!(
        Catalogue::decode(&document.stream(&expected, 1)).unwrap(),
        expected
    );
}

#[test]
fn a_region_page_is_as_the_document_says() {
    let document = Document::read();
    let records = regions()
        .iter()
        .flat_map(|region| document.region(region))
        .collect();
    let told = document.assemble(
        "Region page",
        &[
            ("mark", Number((u32::MAX - 1).into())),
            ("region count", Number(regions().len() as u64)),
            ("regions", Bytes(records)),
        ],
    );
    assert_eq!(encode_region_pages(&regions()), [told]);
}

//! What the engine KVell reads from a volume: superblocks, headers of extents, items, places of large values, images of the index.

use arbitrary::{Result, Unstructured};
use kreon_base::{Checksum, PAGE_BYTES};
use kreon_format::StoreId;
use kvell::format::*;

use crate::case::with;
use crate::forge::{Origin, forge_structure};

/// Longest value of an item here in bytes.
const VALUE_BYTES_MAX: usize = 3000;

/// What is read from a superblock slot.
pub fn superblock(bytes: &[u8]) {
    with(bytes, |u| {
        let given = any_superblock(u)?;
        let slot = given.slot();
        let mut page = *given.encode();
        let whole = PAGE_BYTES;
        let origin = forge_structure(u, &mut page, whole, |page| seal_superblock(page, slot))?;
        for place in 0..SUPERBLOCK_SLOTS {
            let found = Superblock::decode(&page, place);
            match origin {
                Origin::Whole if place == slot => {
                    assert_eq!(found.as_ref().ok(), Some(&Some(given.clone())))
                }
                Origin::Whole | Origin::Flipped => assert!(found.is_err(), "{origin:?}: {found:?}"),
                _ => {}
            }
            if let Ok(Some(found)) = found {
                let again = Superblock::decode(&found.encode(), found.slot()).ok();
                assert_eq!((found.slot(), again), (place, Some(Some(found))));
            }
            let mut slots = [[0; PAGE_BYTES]; SUPERBLOCK_SLOTS];
            slots[place] = page;
            // With one slot that is not blank, it decides.
            let alone = Superblock::decode(&page, place).ok();
            assert_eq!(newest(&slots).ok(), alone);
        }
        Ok(())
    });
}

/// What is read from the first sector of an extent.
pub fn extent_header(bytes: &[u8]) {
    with(bytes, |u| {
        let given = ExtentHeader {
            store: StoreId(u.arbitrary()?),
            extent: ExtentNo(u.arbitrary()?),
            partition: u.int_in_range(0..=PARTITIONS_MAX as u16 - 1)?,
            class: ClassNo(u.arbitrary()?),
            sequence: u.arbitrary()?,
        };
        let (store, extent) = (given.store, given.extent);
        let mut sector = given.encode();
        let whole = sector.len();
        let origin = forge_structure(u, &mut sector, whole, |sector| {
            seal_header(sector, store, extent);
        })?;
        let found = match ExtentHeader::decode(&sector, store, extent) {
            FoundExtent::Header(found) => Some(found),
            FoundExtent::Blank => {
                assert_eq!(sector, [0; EXTENT_HEADER_BYTES]);
                None
            }
            FoundExtent::Bad(_) => None,
        };
        match origin {
            Origin::Whole => assert_eq!(found, Some(given)),
            Origin::Flipped => assert_eq!(found, None),
            _ => {}
        }
        if let Some(found) = found {
            assert_eq!((found.store, found.extent), (store, extent));
            let again = ExtentHeader::decode(&found.encode(), store, extent);
            assert!(matches!(again, FoundExtent::Header(again) if again == found));
        }
        let elsewhere = ExtentHeader::decode(&sector, store, ExtentNo(extent.0 ^ 1));
        assert!(!matches!(elsewhere, FoundExtent::Header(_)) || origin != Origin::Whole);
        Ok(())
    });
}

/// What is read from a slot.
pub fn item(bytes: &[u8]) {
    with(bytes, |u| {
        let seal = ItemSeal {
            store: StoreId(u.arbitrary()?),
        };
        let given = AnyItem::new(u)?;
        let slot = given.slot(u)?;
        let mut content = vec![0; slot.bytes as usize];
        let end = given.write(&mut content, seal, slot);
        let origin = forge_structure(u, &mut content, end, |content| {
            seal_item(content, seal, slot)
        })?;
        let found = decode(&content, seal, slot);
        match (origin, &found) {
            (Origin::Whole, Found::Whole(item)) => {
                assert_eq!(
                    (item.head.kind, item.head.timestamp),
                    (given.kind, given.timestamp)
                );
                assert!(
                    given.key.starts_with(item.key)
                        && item.head.is_of(&given.key, key_hash(seal, &given.key))
                );
                assert_eq!(item.value, given.value);
            }
            (Origin::Whole, _) => panic!("{given:?} became {found:?}"),
            (Origin::Flipped, Found::Whole(item)) => panic!("damaged, and read as {item:?}"),
            _ => {}
        }
        let head = decode_head(&content, seal, slot);
        match (&found, head) {
            (Found::Blank, FoundHead::Blank) | (Found::BadHead, FoundHead::BadHead) => {}
            (Found::Torn(one), FoundHead::Head(other)) => assert_eq!(*one, other),
            (Found::Whole(item), FoundHead::Head(other)) => assert_eq!(item.head, other),
            (found, head) => panic!("{found:?} with {head:?}"),
        }
        if let Found::Whole(item) = found {
            reads_back(&item, seal, slot);
        }
        let elsewhere = Slot {
            offset: slot.offset ^ 4096,
            ..slot
        };
        let found = decode(&content, seal, elsewhere);
        assert!(
            origin != Origin::Whole || matches!(found, Found::BadHead),
            "{found:?}"
        );
        Ok(())
    });
}

/// What is read of a large value: its places, and its parts.
pub fn large_value(bytes: &[u8]) {
    if let Ok(value) = LargeValue::decode(bytes) {
        assert_eq!(value.encode(), bytes);
        assert!((1..=PARTS_MAX).contains(&value.parts.len()));
    }
    if let Some((part, piece)) = PartOf::decode(bytes) {
        assert_eq!([&part.encode(), piece].concat(), bytes);
    }
    with(bytes, |u| {
        let offsets: Vec<u32> = u.arbitrary()?;
        let given = LargeValue {
            value_bytes: u.int_in_range(0..=kreon_base::VALUE_BYTES_MAX as u32)?,
            checksum: u.arbitrary()?,
            parts: offsets.iter().map(|&at| u64::from(at) * 8).collect(),
        };
        let expected = (1..=PARTS_MAX)
            .contains(&given.parts.len())
            .then(|| given.clone());
        assert_eq!(LargeValue::decode(&given.encode()).ok(), expected);
        Ok(())
    });
}

/// What is read from a block of an image of the index.
pub fn image(bytes: &[u8]) {
    with(bytes, |u| {
        let (store, offset) = (StoreId(u.arbitrary()?), u.arbitrary()?);
        let given = ImageHeader {
            store,
            number: u.arbitrary()?,
            partition: u.arbitrary()?,
            index_key_bytes: u.arbitrary()?,
            incarnation: u.arbitrary()?,
            sequence: u.arbitrary()?,
        };
        let records = image_records(u)?;
        let used_bytes = records.len();
        let mut block = [vec![0; IMAGE_HEADER_BYTES], records.clone(), vec![0; 64]].concat();
        given.seal(&mut block, offset, used_bytes);
        let end = IMAGE_HEADER_BYTES + used_bytes;
        let origin = forge_structure(u, &mut block, end, |block| {
            block[4..8].copy_from_slice(&[b'v', b'I', FORMAT_VERSION, 0]);
            block[8..16].copy_from_slice(&store.0.to_le_bytes());
            let sum = checksum(&[store.0, offset], &block[4..]);
            block[..4].copy_from_slice(&sum);
        })?;
        let found = ImageHeader::decode(&block, store, offset);
        match (origin, &found) {
            (Origin::Whole, Ok((header, _, _))) => assert_eq!(*header, given),
            (Origin::Whole, Err(error)) => panic!("{given:?}: {error}"),
            (Origin::Flipped, Ok(_)) => panic!("a changed block is taken for a whole one"),
            _ => {}
        }
        if let Ok((_, found, _)) = found {
            assert!(ImageHeader::decode(&block, store, offset ^ 4096).is_err());
            let mut again = Vec::new();
            for record in found {
                match record {
                    Some(record) => record.encode(&mut again),
                    None => return Ok(()),
                }
            }
            // All of them were records: nothing else was in use.
            let used = block.get(IMAGE_HEADER_BYTES..IMAGE_HEADER_BYTES + again.len());
            assert_eq!(used, Some(&again[..]));
            assert!(origin != Origin::Whole || again == records);
        }
        Ok(())
    });
}

/// Records of an image, encoded.
fn image_records(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for _ in 0..u.int_in_range(0..=6)? {
        let some = vec![u.arbitrary()?; u.int_in_range(0..=20_usize)?];
        let eights = &some[..some.len() / 8 * 8];
        let (offset, timestamp) = (u.arbitrary()?, Timestamp(u.arbitrary()?));
        let (class, key_hash) = (ClassNo(u.arbitrary()?), u.arbitrary()?);
        let record = match u.int_in_range(0..=4)? {
            0 => ImageRecord::Extent {
                extent: ExtentNo(u.arbitrary()?),
                class,
                used: eights,
            },
            1 => ImageRecord::Outdated {
                offset,
                class,
                key_hash,
            },
            2 => ImageRecord::Tombstone {
                offset,
                timestamp,
                key_hash,
            },
            3 => ImageRecord::Key {
                offset,
                bytes: &some,
                is_whole: u.arbitrary()?,
            },
            _ => ImageRecord::Large {
                head: offset,
                timestamp,
                parts: eights,
            },
        };
        record.encode(&mut out);
    }
    Ok(out)
}

/// An item that is encoded and read again is the same.
fn reads_back(item: &Item<'_>, seal: ItemSeal, slot: Slot) {
    let mut content = vec![0; slot.bytes as usize];
    let head = &item.head;
    match head.kind {
        // Of a long key it has the beginning only.
        ItemKind::Tombstone if item.key.len() < usize::from(head.key_bytes) => return,
        ItemKind::Tombstone => {
            encode_tombstone(&mut content, seal, slot, head.timestamp, item.key);
        }
        kind => {
            encode(
                &mut content,
                seal,
                slot,
                head.timestamp,
                kind,
                item.key,
                item.value,
            );
        }
    }
    // A long key's hash is what it is; a forged one need not be.
    if key_hash(seal, item.key) == head.key_hash {
        assert_eq!(decode(&content, seal, slot), Found::Whole(*item));
    }
}

/// An item before it is encoded.
#[derive(Debug)]
struct AnyItem {
    kind: ItemKind,
    timestamp: Timestamp,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl AnyItem {
    fn new(u: &mut Unstructured<'_>) -> Result<Self> {
        use ItemKind::{Large, Part, Put, Tombstone};
        let kind = *u.choose(&[Put, Put, Tombstone, Large, Part])?;
        let key_bytes = match (kind, u.ratio(1, 3)?) {
            (Part, _) => 0,
            (_, true) => u.int_in_range(HEAD_KEY_BYTES_MAX - 2..=HEAD_KEY_BYTES_MAX + 300)?,
            (_, false) => u.int_in_range(0..=40)?,
        };
        let value_bytes = match kind {
            Tombstone => 0,
            Part => u.int_in_range(PART_PREFIX_BYTES..=VALUE_BYTES_MAX)?,
            Put | Large => u.int_in_range(0..=VALUE_BYTES_MAX)?,
        };
        let (one, other) = (u.arbitrary()?, u.arbitrary()?);
        Ok(Self {
            kind,
            timestamp: Timestamp(u.arbitrary()?),
            key: vec![one; key_bytes],
            value: vec![other; value_bytes],
        })
    }

    /// A slot that it fits into.
    fn slot(&self, u: &mut Unstructured<'_>) -> Result<Slot> {
        let atomic_bytes = *u.choose(&[ATOMIC_BYTES_MIN, ATOMIC_BYTES_MAX])?;
        let classes = Classes::new(atomic_bytes).expect("a valid atomic unit");
        let wanted = item_bytes(self.key.len(), self.value.len());
        let class = classes
            .class_of(wanted)
            .expect("it is shorter than the largest");
        let sizes = classes.get(class).expect("a class that was found");
        let number = u.int_in_range(0..=sizes.slots_per_extent - 1)?;
        let extent = ExtentNo(u.int_in_range(1..=1 << 20)?);
        Ok(classes
            .slot(extent, class, number)
            .expect("a slot of its class"))
    }

    fn write(&self, content: &mut [u8], seal: ItemSeal, slot: Slot) -> usize {
        let (kind, key) = (self.kind, &self.key);
        match kind {
            ItemKind::Tombstone => encode_tombstone(content, seal, slot, self.timestamp, key),
            _ => encode(content, seal, slot, self.timestamp, kind, key, &self.value),
        }
    }
}

fn any_superblock(u: &mut Unstructured<'_>) -> Result<Superblock> {
    let partitions = u.int_in_range(1..=PARTITIONS_MAX)?;
    let mark = u.arbitrary()?;
    let image = u.arbitrary::<bool>()?.then_some(ImagePlace {
        offset: EXTENT_BYTES as u64 * 3,
        bytes: 70_000,
        checksum: 5,
    });
    Ok(Superblock {
        store: StoreId(u.arbitrary()?),
        sequence: u.arbitrary()?,
        incarnation: u.int_in_range(0..=INCARNATION_MAX)?,
        extents_end: u.int_in_range(0..=1 << 20)?,
        atomic_bytes: *u.choose(&[512, 1024, 2048, 4096])?,
        index_key_bytes: u.arbitrary()?,
        state: *u.choose(&[State::Dirty, State::Clean])?,
        image,
        durable: vec![Timestamp(mark); partitions],
    })
}

/// CRC-32C of words and bytes, as the document of the format says.
fn checksum(words: &[u64], bytes: &[u8]) -> [u8; 4] {
    let mut checksum = Checksum::new();
    for word in words {
        checksum = checksum.with(&word.to_le_bytes());
    }
    checksum.with(bytes).finish().to_le_bytes()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk);
    word.copied().map_or(0, u64::from_le_bytes)
}

fn seal_superblock(page: &mut [u8], slot: usize) {
    page[4..8].copy_from_slice(&[b'v', b'S', FORMAT_VERSION, 0]);
    let sum = checksum(&[word(page, 16), slot as u64], &page[4..]);
    page[..4].copy_from_slice(&sum);
}

fn seal_header(sector: &mut [u8], store: StoreId, extent: ExtentNo) {
    sector[4..8].copy_from_slice(&[b'v', b'E', FORMAT_VERSION, 0]);
    let sum = checksum(&[store.0, extent.0.into()], &sector[4..]);
    sector[..4].copy_from_slice(&sum);
}

/// Puts the right checksums into an item, as far as its lengths leave it in its slot.
fn seal_item(content: &mut [u8], seal: ItemSeal, slot: Slot) {
    let key_bytes = usize::from(u16::from_le_bytes([content[20], content[21]]));
    let value_bytes = word(content, 16) as u32 as usize;
    let (head, end) = (head_bytes(key_bytes), item_bytes(key_bytes, value_bytes));
    if content[22] != ItemKind::Tombstone as u8 {
        let timestamp = word(content, 8);
        if let Some(body) = content.get(head..end) {
            let sum = checksum(&[seal.store.0, slot.offset, timestamp], body);
            content[4..8].copy_from_slice(&sum);
        }
    }
    if let Some(front) = content.get(4..head) {
        let sum = checksum(&[seal.store.0, slot.offset], front);
        content[..4].copy_from_slice(&sum);
    }
}

//! The exact bytes of every structure. A change here is a change of the format.

use kreon_base::Checksum;
use kvell::format::*;

use crate::superblocks::superblock;
use crate::{SEAL, TIMESTAMP, encoded, noise};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first 64 bytes, and a checksum of all.
fn digest(bytes: &[u8]) -> String {
    format!("{} {:08x}", hex(&bytes[..64]), Checksum::of(bytes))
}

#[test]
fn item_bytes_are_these() {
    assert_eq!(
        hex(&encoded(32, ItemKind::Put, b"key", b"value")),
        "c4a44ccba2f7dbc4080706050403020105000000030001096b657976616c7565"
    );
    assert_eq!(
        digest(&encoded(600, ItemKind::Large, &noise(1, 500), b"value")),
        "c9f8193baf633f55080706050403020105000000f40103094dca5d17269691a58ec272f66d765d0d5500e193d5269aa4e14d59aa5f14a134f49a95e36f550cbb 84d6b2c6"
    );
    assert_eq!(
        hex(&encoded(27, ItemKind::Tombstone, b"key", b"")),
        "31a55fbd00000000080706050403020100000000030002096b6579"
    );
    assert_eq!(
        digest(&encoded(600, ItemKind::Tombstone, &noise(1, 500), b"")),
        "601ac02500000000080706050403020100000000f40102094dca5d17269691a58ec272f66d765d0d5500e193d5269aa4e14d59aa5f14a134f49a95e36f550cbb 31b4f5c9"
    );
}

#[test]
fn bytes_of_a_large_value_are_these() {
    let part = PartOf {
        key_hash: key_hash(SEAL, b"key"),
        timestamp: TIMESTAMP,
        number: 0x0a0b_0c0d,
    };
    assert_eq!(
        hex(&part.encode()),
        "d4f3adb60878d3fd3e318c55667efeb408070605040302010d0c0b0a"
    );
    let large = LargeValue {
        value_bytes: 0x0102_0304,
        checksum: 0x0506_0708,
        parts: vec![0x1112_1314_1518, 0x2122_2324_2528],
    };
    assert_eq!(
        hex(&large.encode()),
        "040302010807060518151413121100002825242322210000"
    );
}

#[test]
fn extent_header_bytes_are_these() {
    let header = ExtentHeader {
        store: SEAL.store,
        extent: ExtentNo(0x0102_0304),
        partition: 0x0f,
        class: ClassNo(0x22),
        sequence: 0x3132_3334_3536_3738,
    };
    assert_eq!(
        digest(&header.encode()),
        "ebbda88a76450100efcdab8967452301040302010f00220038373635343332310000000000000000000000000000000000000000000000000000000000000000 5dd3864d"
    );
}

#[test]
fn superblock_bytes_are_these() {
    let mut given = superblock(0x0102_0304_0506_0707);
    given.image = Some(ImagePlace {
        offset: 0x1112_1314_1516_1718,
        bytes: 0x2122_2324_2526_2728,
        checksum: 0x3132_3334,
    });
    assert_eq!(
        digest(&*given.encode()),
        "458eb34d765301004b76656c6c566f6cefcdab896745230107070605040302010900000028000000000010000002000008002000010000001817161514131211 07c5ab27"
    );
}

/// The partition of a key must stay the same in later builds.
#[test]
fn hashes_of_keys_are_these() {
    let hashes = [0, 1, 8, 30, 500].map(|length| key_hash(SEAL, &noise(1, length)));
    assert_eq!(
        hashes.map(|hash| format!("{hash:032x}")).join(" "),
        "ddc4a7acb62a6811b9ec210fe9d601db 53f48c59f4eb2aa4fb80bed04d98b5cb e874caa97870c10b5c99be51b063a4bc 66c6b9a5b1e3240089babd5fa7fb154f 0d5d766df672c28ea5919626175dca4d"
    );
    let partitions = hashes.map(|hash| partition_of(hash, 100));
    assert_eq!(partitions, [86, 32, 90, 40, 5]);
}

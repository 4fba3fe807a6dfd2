//! Stores that are members of a group: who may open them, and what their primary's server gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kreon::{Durability, ErrorKind, Mirroring, Store};
use kreon_base::{Incarnation, Lsn};
use kreon_device::{Device, FileDevice, FileOptions};
use kreon_engine::{LogMirror, Operation, Terms};

/// Members that have everything, and count what they are asked for.
#[derive(Default)]
struct Members {
    syncs: AtomicU64,
}

impl LogMirror for Members {
    fn grown(&self) {}
    fn landed(&self) -> Lsn {
        Lsn::MAX
    }
    fn sync(&self, upto: Lsn) -> kreon::Result<Lsn> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(upto)
    }
    fn durable(&self) -> Lsn {
        Lsn::MAX
    }
}

fn small() -> kreon::Options {
    Store::options().memory_bytes(8 << 20)
}

#[test]
fn a_volume_in_the_directory_of_a_server_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("group-3.kreon");
    small().open(&path).unwrap().close().unwrap();
    let before = std::fs::read(&path).unwrap();
    std::fs::write(folder.path().join("CLUSTER"), "prod").unwrap();
    let link = tempfile::tempdir().unwrap();
    let link = link.path().join("link.kreon");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for path in [&path, &link] {
        let error = small().open(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("server of a cluster"), "{error}");
    }
    assert!(std::fs::read(&path).unwrap() == before);
    let other = folder.path().join("new.kreon");
    assert!(small().open(&other).is_err());
    assert!(!other.exists(), "nothing is made there either");
    std::fs::remove_file(folder.path().join("CLUSTER")).unwrap();
    small().open(&path).unwrap();
}

#[test]
fn the_store_of_a_primary_is_a_store_and_has_its_engine() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("CLUSTER"), "prod").unwrap();
    let path = folder.path().join("group-3.kreon");
    let open = |term| {
        let file = FileOptions {
            create: true,
            ..FileOptions::default()
        };
        let (device, _) = FileDevice::open(&path, &file).unwrap();
        let members = Arc::new(Members::default());
        let mirroring = Mirroring {
            incarnation: Some(Incarnation(term)),
            log_mirror: Some(Arc::clone(&members) as Arc<dyn LogMirror>),
            ..Mirroring::default()
        };
        let options = small().durability(Durability::Sync).mirrored(mirroring);
        let store = options.open_on(Arc::new(device) as Arc<dyn Device>);
        store.map(|store| (store, members))
    };
    let (store, members) = open(4).unwrap();
    let cities = store.region("cities").unwrap();
    cities.put("chania", "53910").unwrap();
    assert!(members.syncs.load(Ordering::SeqCst) >= 2);
    let engine = store.engine();
    let region = engine.existing_region("cities").unwrap();
    let operation = Operation {
        region: &region,
        key: b"heraklion",
        value: Some(b"140730"),
        is_range: false,
        terms: Terms::default(),
    };
    let end = engine.write_ahead(&[operation]).unwrap();
    assert_eq!(engine.log_tail(), end);
    let bytes = cities.get("heraklion").unwrap();
    assert_eq!(bytes.as_deref(), Some(&b"140730"[..]));
    engine.sync().unwrap();
    engine.abandon().unwrap();
    assert_eq!(cities.get("chania").unwrap_err().kind(), ErrorKind::Closed);
    drop((store, cities, region));
    assert_eq!(open(4).err().unwrap().kind(), ErrorKind::InvalidArgument);
    let (store, _) = open(5).unwrap();
    let cities = store.existing_region("cities").unwrap();
    assert_eq!(cities.iter().count(), 2);
}

#[test]
fn a_mirrored_store_is_not_opened_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let mirroring = Mirroring {
        incarnation: Some(Incarnation(1)),
        ..Mirroring::default()
    };
    let path = folder.path().join("store");
    let error = small().mirrored(mirroring).open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(!path.exists());
}

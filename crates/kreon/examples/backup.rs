//! Backups of a store that goes on being written, and a store made of one: `cargo run -p kreon --example backup -- [FOLDER]`.
//!
//! Three backups share what they have in common; the second is restored beside the store, which stays open.

use std::path::{Path, PathBuf};

use kreon::{Backup, ErrorKind, Result, Store};

/// Makes a backup and tells what it copied.
fn make(backup: &Backup, store: &Store) -> Result<()> {
    let report = backup.make(store)?;
    println!(
        "backup {}: {} bytes copied of {}",
        report.number, report.copied_bytes, report.bytes
    );
    Ok(())
}

/// Three backups of a store in `folder`, and a restore.
pub fn work(folder: &Path) -> Result<()> {
    let store = Store::open(folder.join("cities.kreon"))?;
    let cities = store.region("cities")?;
    // At most 50 MB a second, so that readers and writers have the rest of the device.
    let backup = Backup::at(folder.join("backups"))
        .keep(3)
        .bytes_per_second(50_000_000);
    for year in [1991_u32, 2001, 2011] {
        cities.put("gr/heraklion", format!("counted in {year}"))?;
        for house in 0..1000_u32 {
            cities.put(
                [b"house/", &house.to_be_bytes()[..]].concat(),
                "x".repeat(1000),
            )?;
        }
        make(&backup, &store)?;
    }

    // Not the newest: the second. Every byte is verified, on the way and before.
    let numbers: Vec<_> = backup.list()?.iter().map(|info| info.number).collect();
    let second = backup.number(numbers[1]);
    second.verify()?;
    let path = folder.join("restored.kreon");
    second.restore(&path)?;
    let restored = Store::open(&path)?;
    let then = restored.region("cities")?.get("gr/heraklion")?;
    assert_eq!(then.as_deref(), Some(b"counted in 2001".as_slice()));

    // A restore never writes over what is there.
    let refusal = second.restore(&path).map(|_| ());
    assert_eq!(
        refusal.map_err(|error| error.kind()),
        Err(ErrorKind::InvalidArgument)
    );
    println!("backup {} is restored", numbers[1]);
    restored.close()?;
    store.close()
}

fn main() -> Result<()> {
    if let Some(folder) = std::env::args().nth(1) {
        return work(&PathBuf::from(folder));
    }
    let folder = tempfile::tempdir().expect("a folder for the store");
    work(folder.path())
}

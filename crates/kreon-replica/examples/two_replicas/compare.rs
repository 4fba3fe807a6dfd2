//! Two files, where they must be the same, and what a file holds when it is opened.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kreon_device::{Device, FileDevice, FileOptions};
use kreon_engine::{Engine, Options};
use kreon_replica::drive::{FileVolume, Volume as _};

use super::words::{Ranges, key_bytes, value};

/// Bytes that were compared, and the first range that differs.
pub fn compare(one: &Path, other: &Path, ranges: &Ranges) -> std::io::Result<(u64, Option<u64>)> {
    let (one, other) = (File::open(one)?, File::open(other)?);
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    let mut total = 0;
    for (offset, len_bytes) in ranges {
        let mut at = 0;
        while at < *len_bytes {
            let part = (len_bytes - at).min(1 << 20) as usize;
            one.read_exact_at(&mut left[..part], offset + at)?;
            other.read_exact_at(&mut right[..part], offset + at)?;
            if left[..part] != right[..part] {
                return Ok((total, Some(offset + at)));
            }
            at += part as u64;
            total += part as u64;
        }
    }
    Ok((total, None))
}

/// The file of a server that counts, which nobody has open.
pub fn closed_file(base: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let volume = FileVolume::new(base);
    drop(volume.open()?);
    volume.file().ok_or_else(|| "no file was opened".into())
}

/// The same of one that a process has open: the last one.
pub fn last_file(base: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let (Some(folder), Some(name)) = (base.parent(), base.file_name()) else {
        return Err("a path that names no file".into());
    };
    let prefix = format!("{}.", name.to_string_lossy());
    let mut last = None;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        last = last.max(number.and_then(|number| number.parse::<u64>().ok()));
    }
    let last = last.ok_or("a server has no file")?;
    Ok(folder.join(format!("{prefix}{last}")))
}

/// Opens a file whose server is gone as it would be after a crash, verifies it, and looks for keys; what is wrong.
pub fn open_and_verify(
    file: &Path,
    memory_mib: usize,
    keys: impl Iterator<Item = u64>,
) -> Result<u64, Box<dyn Error>> {
    let (device, _) = FileDevice::open(file, &FileOptions::default())?;
    let options = Options {
        memory_bytes: memory_mib << 20,
        create: false,
        ..Options::default()
    };
    let engine = Engine::open(Arc::new(device) as Arc<dyn Device>, options)?;
    let region = engine.existing_region("values")?;
    let mut wrong = 0;
    for key in keys {
        let is_there = engine.get(&region, &key_bytes(key), None, |found| found == value(key))?;
        wrong += u64::from(is_there != Some(true));
    }
    let problems = engine.verify()?.problems;
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    Ok(wrong + problems.len() as u64)
}

//! Files of a group on simulated devices, with power cuts between all steps, and in a real folder.

mod folder;

use std::sync::Arc;

use kreon_base::{Epoch, ErrorKind, Incarnation, PageNo, Result};
use kreon_device::{AlignedBuf, Device};
use kreon_format::{PagePointer, StoreId, Superblock};
use kreon_sim::Dice;
use kreon_volume::superblock;

use self::folder::{Power, SimFolder};
use super::*;

/// Where a store of the tests has its epoch in all bytes of a block.
const MARK_AT: u64 = 1 << 20;

fn slot(epoch: u64) -> Superblock {
    Superblock {
        store: StoreId(1),
        epoch: Epoch(epoch),
        incarnation: Incarnation(2),
        segments: 1,
        catalogue: PagePointer {
            page: PageNo(0),
            epoch: Epoch(epoch),
            checksum: 0,
        },
        catalogue_bytes: 0,
    }
}

/// Makes a store of a file, as the end of a resync does.
fn complete(device: &dyn Device, epoch: u64) -> Result<()> {
    let mut mark = AlignedBuf::new(4096);
    mark.fill(epoch as u8);
    device.write_at(MARK_AT, &mark)?;
    device.flush()?;
    superblock::commit(device, &slot(epoch))?;
    superblock::mirror(device, &slot(epoch))?;
    device.flush()
}

/// The epoch of a store whose content is of the same.
fn epoch_of(file: &GroupFile) -> u64 {
    let epoch = file.slot.unwrap().epoch.0;
    let mut mark = AlignedBuf::new(4096);
    file.device.read_at(MARK_AT, &mut mark).unwrap();
    assert!(mark.iter().all(|byte| u64::from(*byte) == epoch));
    epoch
}

fn files(folder: &SimFolder) -> GroupFiles {
    GroupFiles::new(Arc::new(folder.clone()), "group-7").unwrap()
}

/// A folder with a store of epoch 5 in the first file.
fn with_store(free_bytes: u64) -> SimFolder {
    let folder = SimFolder::new(Power::for_ever(), free_bytes);
    let begun = files(&folder).begin(None, 0).unwrap();
    complete(&*begun.file.device, 5).unwrap();
    folder
}

/// A whole resync, to the next epoch. `completed` tells how far it came.
fn resync(files: &GroupFiles, completed: &mut bool) -> Result<()> {
    let old = files.choose()?;
    let epoch = old.as_ref().map_or(5, |old| old.slot.unwrap().epoch.0) + 1;
    let begun = files.begin(old, 1 << 20)?;
    complete(&*begun.file.device, epoch)?;
    *completed = true;
    files.settle(&begun.file)
}

#[test]
fn after_a_power_cut_at_any_step_a_whole_store_counts() {
    let mut dice = Dice::new(7);
    let mut steps = 0;
    let mut counted = [0; 2];
    loop {
        let mut has_ended = false;
        for _ in 0..4 {
            let folder = with_store(1 << 30);
            let cut = folder.powered(Power::until(steps));
            let mut completed = false;
            has_ended = resync(&files(&cut), &mut completed).is_ok();
            let after = cut.crash(&mut dice);
            let chosen = files(&after).choose().unwrap().unwrap();
            let epoch = epoch_of(&chosen);
            assert!(
                epoch == 6 || epoch == 5 && !completed,
                "after {steps} steps"
            );
            counted[usize::from(epoch == 6)] += 1;
            drop(chosen);
            resync(&files(&after), &mut completed).unwrap();
            assert_eq!(after.names().unwrap().len(), 1, "after {steps} steps");
            let last = files(&after.crash(&mut dice)).choose().unwrap().unwrap();
            assert_eq!(epoch_of(&last), epoch + 1);
        }
        if has_ended {
            break;
        }
        steps += 1;
    }
    assert!(
        steps > 12 && counted[0] > 20 && counted[1] > 8,
        "{counted:?}"
    );
}

#[test]
fn without_space_the_old_file_is_a_store_or_none_never_a_part() {
    let mut dice = Dice::new(8);
    let mut counted = [0; 3];
    for steps in 0..40 {
        let folder = with_store(0);
        let cut = folder.powered(Power::until(steps));
        let has_ended = resync(&files(&cut), &mut false).is_ok();
        let after = cut.crash(&mut dice);
        let chosen = files(&after).choose().unwrap();
        let epoch = chosen.as_ref().map_or(0, epoch_of);
        assert!(matches!(epoch, 0 | 5 | 6) && (!has_ended || epoch == 6));
        counted[[0, 5, 6].iter().position(|known| *known == epoch).unwrap()] += 1;
        let begun = files(&after).begin(chosen, 1 << 20).unwrap();
        assert_eq!((begun.is_beside, begun.file.generation), (false, 1));
        assert!(files(&after).choose().unwrap().is_none());
    }
    assert!(counted.iter().all(|count| *count > 0), "{counted:?}");
}

#[test]
fn a_resync_that_was_cut_off_goes_on_in_its_file() {
    let folder = with_store(1 << 30);
    let files = files(&folder);
    let begun = files.begin(files.choose().unwrap(), 1 << 20).unwrap();
    assert!(begun.is_beside && begun.file.generation == 2);
    let mut copied = AlignedBuf::new(4096);
    copied.fill(9);
    begun.file.device.write_at(MARK_AT, &copied).unwrap();
    assert_eq!(epoch_of(&files.choose().unwrap().unwrap()), 5);
    // The space that the file has counts as free.
    folder.set_free_bytes(0);
    let again = files.begin(files.choose().unwrap(), 4096).unwrap();
    assert!(again.is_beside && again.file.generation == 2);
    let mut found = AlignedBuf::new(4096);
    again.file.device.read_at(MARK_AT, &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 9));
    // It is not enough: the file goes, and the old one is the one to be written.
    let alone = files.begin(files.choose().unwrap(), 1 << 30).unwrap();
    assert!(!alone.is_beside && alone.file.generation == 1);
    assert_eq!(folder.names().unwrap(), ["group-7.1"]);
}

#[test]
fn of_equal_superblocks_the_later_file_counts_and_a_lower_one_never() {
    let folder = with_store(1 << 30);
    let files = files(&folder);
    let begun = files.begin(files.choose().unwrap(), 0).unwrap();
    complete(&*begun.file.device, 5).unwrap();
    assert_eq!(files.choose().unwrap().unwrap().generation, 2);
    complete(&*folder.open("group-7.1").unwrap(), 8).unwrap();
    assert_eq!(files.choose().unwrap().unwrap().generation, 1);
}

#[test]
fn a_file_that_is_no_store_yet_is_not_settled_on() {
    let folder = with_store(1 << 30);
    let files = files(&folder);
    let begun = files.begin(files.choose().unwrap(), 0).unwrap();
    let error = files.settle(&begun.file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(epoch_of(&files.choose().unwrap().unwrap()), 5);
    // Nor is a store written anew that nobody has chosen.
    assert!(files.begin(None, 0).is_err());
    assert_eq!(epoch_of(&files.choose().unwrap().unwrap()), 5);
}

fn in_folder(path: &std::path::Path) -> GroupFiles {
    let folder = Folder::new(path, kreon_device::FileOptions::default());
    GroupFiles::new(Arc::new(folder), "group-7").unwrap()
}

#[test]
fn files_in_a_folder_of_the_system_are_chosen_and_settled_likewise() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let files = in_folder(path);
    for name in [
        "group-7.01",
        "group-7.x",
        "group-70.1",
        "CLUSTER",
        "group-7.3.new",
    ] {
        std::fs::write(path.join(name), "something else").unwrap();
    }
    assert!(files.choose().unwrap().is_none());
    let first = files.begin(None, 0).unwrap();
    complete(&*first.file.device, 5).unwrap();
    drop(first);
    let second = files.begin(files.choose().unwrap(), 1 << 20).unwrap();
    assert!(second.is_beside && path.join("group-7.1").exists());
    complete(&*second.file.device, 6).unwrap();
    files.settle(&second.file).unwrap();
    drop(second);
    assert_eq!(epoch_of(&files.choose().unwrap().unwrap()), 6);
    assert!(!path.join("group-7.1").exists() && !path.join("group-7.3.new").exists());
    assert!(path.join("group-7.01").exists() && path.join("group-70.1").exists());
    // More than any file system has.
    let alone = files.begin(files.choose().unwrap(), u64::MAX).unwrap();
    assert!(!alone.is_beside && alone.file.generation == 2);
}

#[test]
fn links_and_files_of_others_are_refused_and_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let files = in_folder(path);
    let first = files.begin(None, 0).unwrap();
    complete(&*first.file.device, 5).unwrap();
    let foreign = vec![3; 3 << 20];
    let (name, elsewhere) = (path.join("group-7.2"), path.join("elsewhere"));
    let refused = |files: &GroupFiles| {
        let settled = files.settle(&first.file);
        let begun = files.begin(Some(first.file.clone()), 0).map(drop);
        for outcome in [settled, begun] {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    };
    std::fs::write(&name, &foreign).unwrap();
    refused(&files);
    assert_eq!(std::fs::read(&name).unwrap(), foreign);
    std::fs::rename(&name, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &name).unwrap();
    refused(&files);
    assert_eq!(std::fs::read(&elsewhere).unwrap(), foreign);
    std::fs::remove_file(&name).unwrap();
    std::fs::create_dir(&name).unwrap();
    refused(&files);
    drop(first);
    let error = files.choose().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

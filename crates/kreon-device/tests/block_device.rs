//! A raw block device: a loop device over a file.

mod support;

use kreon_base::ErrorKind;
use kreon_device::{AlignedBuf, Device, Facility, FileDevice, FileOptions, Read, Write};
use support::{Loop, pattern};

#[test]
fn a_block_device_holds_a_volume() {
    let Some(disk) = Loop::attach(8 << 20) else {
        return;
    };
    for direct in [Facility::Auto, Facility::Off] {
        let options = FileOptions {
            direct,
            ..FileOptions::default()
        };
        let (device, created) = FileDevice::open(&disk.device, &options).unwrap();
        // A block device has all its space already.
        assert!(!created && device.free_bytes().is_none());
        let is_direct = direct == Facility::Auto && cfg!(not(feature = "portable"));
        assert_eq!(device.is_direct(), is_direct);
        assert_eq!(
            (device.len_bytes(), device.len_bytes_max()),
            (8 << 20, 8 << 20)
        );

        let bytes = pattern(1 << 20, 3);
        let writes: Vec<_> = bytes
            .chunks(64 << 10)
            .enumerate()
            .map(|(n, part)| Write::new((n as u64) << 19, part))
            .collect();
        device.write(&writes).unwrap();
        device.flush().unwrap();
        let mut found = AlignedBuf::new(1 << 20);
        let mut reads: Vec<_> = found
            .chunks_mut(64 << 10)
            .enumerate()
            .map(|(n, part)| Read::new((n as u64) << 19, part))
            .collect();
        device.read(&mut reads).unwrap();
        assert!(found[..] == bytes[..]);
    }
}

#[test]
fn a_block_device_has_its_size() {
    let Some(disk) = Loop::attach(4 << 20) else {
        return;
    };
    let (device, _) = FileDevice::open(&disk.device, &FileOptions::default()).unwrap();
    device.grow(4 << 20).unwrap();
    assert_eq!(
        device.grow((4 << 20) + 4096).unwrap_err().kind(),
        ErrorKind::OutOfSpace
    );
    device.allocate(0, 4 << 20).unwrap();
    let page = pattern(4096, 1);
    let beyond = device.write_at(4 << 20, &page).unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::InvalidArgument);

    device.write_at(4096, &page).unwrap();
    device.discard(4096, 4096).unwrap();
    let mut found = AlignedBuf::new(4096);
    device.read_at(4096, &mut found).unwrap();
    assert!(found.iter().all(|&b| b == 0) || found[..] == page[..]);
}

#[test]
fn a_second_open_of_a_block_device_finds_it_busy() {
    let Some(disk) = Loop::attach(1 << 20) else {
        return;
    };
    let (_first, _) = FileDevice::open(&disk.device, &FileOptions::default()).unwrap();
    let second = FileDevice::open(&disk.device, &FileOptions::default());
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Busy);
}

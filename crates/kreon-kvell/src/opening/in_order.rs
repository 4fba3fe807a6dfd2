//! Reads pieces of the device in their order, at depth.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kreon_base::Result;
use kreon_device::{AlignedBuf, Device, Transferred};

/// A transfer ends the wait before that.
const PATIENCE: Duration = Duration::from_secs(60);

/// Hands out the bytes at each of `offsets`, `len_bytes` of them, in this order. While one is worked on, up to `depth` of the
/// next are in flight.
pub fn read_in_order(
    device: &Arc<dyn Device>,
    (offsets, len_bytes): (&[u64], usize),
    depth: usize,
    mut take: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut queue = Arc::clone(device).transfer_queue(depth);
    let mut left = (0..).zip(offsets);
    let mut spare: Vec<AlignedBuf> = Vec::new();
    let mut ended: Vec<Transferred> = Vec::new();
    let mut early = BTreeMap::new();
    for (next, &offset) in (0_u64..).zip(offsets) {
        let bytes = loop {
            // Those that came early have their buffers still.
            for _ in early.len()..queue.room() {
                let Some((tag, &offset)) = left.next() else {
                    break;
                };
                let buffer = spare.pop().unwrap_or_else(|| AlignedBuf::new(len_bytes));
                queue.read(tag, offset, buffer, len_bytes);
            }
            queue.submit();
            if let Some(bytes) = early.remove(&next) {
                break bytes;
            }
            queue.wait(PATIENCE);
            queue.reap(&mut ended);
            for one in ended.drain(..) {
                one.outcome?;
                early.extend(one.buffer.map(|buffer| (one.tag, buffer)));
            }
        };
        take(offset, &bytes)?;
        spare.push(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kreon_sim::{SimDevice, SimOptions};

    #[test]
    fn pieces_come_in_their_order_with_what_is_there() {
        let device = Arc::new(SimDevice::new(SimOptions::default()));
        device.grow(1 << 20).expect("room");
        for number in 0..40_u64 {
            let mut page = AlignedBuf::new(4096);
            page.fill(number as u8 + 1);
            device.write_at(number * 4096, &page).expect("a write");
        }
        let device: Arc<dyn Device> = device;
        let offsets: Vec<u64> = (0..40).rev().map(|number| number * 4096).collect();
        for depth in [1, 3, 64] {
            let mut seen = Vec::new();
            read_in_order(&device, (&offsets, 4096), depth, |offset, bytes| {
                assert!(bytes.iter().all(|&it| u64::from(it) == offset / 4096 + 1));
                seen.push(offset);
                Ok(())
            })
            .expect("reads");
            assert_eq!(seen, offsets);
        }
    }
}

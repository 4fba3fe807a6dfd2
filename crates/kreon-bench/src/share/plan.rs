//! What a store asked of its device in a slice, to be asked of a bare one.

use kreon_device::{DeviceStats, TransferStats};

use crate::keys::hash;

/// One transfer, or a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A read of so many bytes.
    Read(usize),
    /// A write of so many bytes.
    Write(usize),
    /// A flush.
    Flush,
}

/// The steps between two looks at a device's counters: as many reads and writes of each size, mixed, and the flushes
/// between them at equal distances, one at the end.
///
/// Counters know sizes by powers of two and all bytes together: within each class all transfers get one size, so that the
/// bytes come out right, to a block each.
pub fn steps(before: &DeviceStats, after: &DeviceStats, block_bytes: usize) -> Vec<Step> {
    let reads = sizes(&before.reads, &after.reads, block_bytes).map(Step::Read);
    let writes = sizes(&before.writes, &after.writes, block_bytes).map(Step::Write);
    let mut transfers: Vec<Step> = reads.chain(writes).collect();
    shuffle(&mut transfers);
    let flushes = (after.flushes - before.flushes) as usize;
    let mut steps = Vec::with_capacity(transfers.len() + flushes);
    let mut rest = transfers.as_slice();
    for left in (1..=flushes).rev() {
        let (part, others) = rest.split_at(rest.len() / left);
        steps.extend_from_slice(part);
        steps.push(Step::Flush);
        rest = others;
    }
    steps.extend_from_slice(rest);
    steps
}

/// The sizes of the transfers between two looks.
fn sizes(
    before: &TransferStats,
    after: &TransferStats,
    block_bytes: usize,
) -> impl Iterator<Item = usize> {
    let counts = after.sizes.iter().zip(&before.sizes);
    let counts: Vec<u64> = counts.map(|(after, before)| after - before).collect();
    let classes = || {
        counts
            .iter()
            .zip(0..)
            .map(|(count, class)| (*count, 1_u64 << class))
    };
    let least: u64 = classes().map(|(count, bytes)| count * bytes).sum();
    // At least 1 and below 2.
    let stretch = (after.bytes - before.bytes) as f64 / least.max(1) as f64;
    let sizes: Vec<_> = classes()
        .map(|(count, bytes)| {
            let blocks = (bytes as f64 * stretch / block_bytes as f64).round();
            (count as usize, (blocks as usize).max(1) * block_bytes)
        })
        .collect();
    sizes
        .into_iter()
        .flat_map(|(count, bytes)| std::iter::repeat_n(bytes, count))
}

/// In an order that is the same for the same number of steps.
fn shuffle(steps: &mut [Step]) {
    for at in (1..steps.len()).rev() {
        steps.swap(at, (hash(at as u64) % (at as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(transfers: &[usize]) -> TransferStats {
        let mut stats = TransferStats::default();
        for bytes in transfers {
            stats.count += 1;
            stats.bytes += *bytes as u64;
            stats.sizes[bytes.ilog2() as usize] += 1;
        }
        stats
    }

    #[test]
    fn steps_are_as_many_as_large_and_as_often_flushed_as_what_was_counted() {
        let before = DeviceStats {
            reads: stats(&[4096; 3]),
            flushes: 1,
            ..DeviceStats::default()
        };
        let after = DeviceStats {
            reads: stats(&[&[4096; 3][..], &[1536; 40]].concat()),
            writes: stats(&[&[1536; 20][..], &[3072; 4]].concat()),
            flushes: 4,
            ..DeviceStats::default()
        };
        let steps = steps(&before, &after, 512);
        let count = |wanted| steps.iter().filter(|step| **step == wanted).count();
        assert_eq!(count(Step::Read(1536)), 40);
        assert_eq!(count(Step::Write(1536)), 20);
        assert_eq!(count(Step::Write(3072)), 4);
        assert_eq!(count(Step::Flush), 3);
        assert_eq!(steps.len(), 67);
        assert_eq!(steps.last(), Some(&Step::Flush));
    }

    #[test]
    fn flushes_stand_at_equal_distances() {
        let after = DeviceStats {
            writes: stats(&[512; 30]),
            flushes: 3,
            ..DeviceStats::default()
        };
        let steps = steps(&DeviceStats::default(), &after, 512);
        let places = steps.iter().enumerate();
        let places: Vec<_> = places.filter(|(_, step)| **step == Step::Flush).collect();
        assert_eq!(
            places.iter().map(|at| at.0).collect::<Vec<_>>(),
            [10, 21, 32]
        );
    }

    #[test]
    fn reads_and_writes_are_mixed() {
        let after = DeviceStats {
            reads: stats(&[512; 500]),
            writes: stats(&[512; 500]),
            ..DeviceStats::default()
        };
        let steps = steps(&DeviceStats::default(), &after, 512);
        let early = steps[..500].iter();
        let early = early.filter(|step| matches!(step, Step::Read(_))).count();
        assert!((200..300).contains(&early), "{early}");
    }

    #[test]
    fn sizes_between_powers_of_two_keep_the_bytes() {
        let sent: Vec<usize> = (1..200).map(|blocks| blocks * 512).collect();
        let after = DeviceStats {
            writes: stats(&sent),
            ..DeviceStats::default()
        };
        let steps = steps(&DeviceStats::default(), &after, 512);
        let bytes = steps.iter().map(|step| match step {
            Step::Write(bytes) => *bytes,
            _ => 0,
        });
        let (bytes, sent) = (
            bytes.sum::<usize>() as f64,
            sent.iter().sum::<usize>() as f64,
        );
        assert!((bytes / sent - 1.0).abs() < 0.01, "{bytes} {sent}");
    }
}

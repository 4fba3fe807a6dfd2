//! The pass over the indexes: each entry leads to a whole item of its key.

use std::ops::Bound;

use kreon_base::Result;

use super::doubts::{Doubt, Doubts};
use super::reads::Reads;
use super::report::VerifyReport;
use super::volume::Volume;
use crate::index::{Direction, Run};

/// Entries taken under one lock.
const TOGETHER: usize = 512;

/// Entries whose items are read together.
const READ_TOGETHER: usize = 4096;

/// Reads the items of all entries that the pass over the extents has not seen: they were written meanwhile, or are not what
/// they should be.
pub fn verify(
    volume: &Volume<'_>,
    reads: &mut Reads,
    doubts: &mut Doubts,
    report: &mut VerifyReport,
) -> Result<()> {
    for partition in volume.numbers() {
        let mut unseen = Vec::new();
        let (mut run, mut last) = (Run::new(), Run::new());
        loop {
            run.clear();
            volume.look(partition, |it| {
                let from = last.last().map(|entry| entry.spot());
                let from = from.map_or(Bound::Unbounded, Bound::Excluded);
                let index = &it.parts().index;
                index.run(
                    from,
                    Bound::Unbounded,
                    Direction::Forward,
                    TOGETHER,
                    &mut run,
                );
            })?;
            let entries = run.iter().filter(|entry| !doubts.judged.has(entry.at));
            unseen.extend(entries.map(|entry| Doubt {
                partition,
                at: entry.at,
                entry: Some((entry.bytes.to_vec(), entry.whole)),
            }));
            let is_over = run.len() < TOGETHER;
            if is_over || unseen.len() >= READ_TOGETHER {
                doubts.look_at(std::mem::take(&mut unseen), volume, reads, report)?;
            }
            if is_over {
                break;
            }
            std::mem::swap(&mut run, &mut last);
        }
    }
    Ok(())
}

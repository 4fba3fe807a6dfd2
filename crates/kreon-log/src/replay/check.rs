//! Whether a replay would succeed, without one.

use std::collections::BTreeMap;

use kreon_base::{Lsn, Result, SegmentId};

use super::source::Source;
use super::start::ReplayStart;
use super::walk::Walk;

/// Walks as [`replay`](super::replay()) does, up to `until`, behind which the log may be growing.
/// Everything before `until` is known to be durable, so whatever stops the walk before is damage.
///
/// # Errors
/// `Corruption` that says where the log is damaged; `Io`.
pub fn check(start: &ReplayStart<'_>, until: Lsn) -> Result<()> {
    let known = start.segments.iter();
    let mut chain: BTreeMap<u64, SegmentId> =
        known.map(|(id, sequence)| (*sequence, *id)).collect();
    let Some(open) = start.record.open else {
        return Ok(());
    };
    chain.entry(open.sequence).or_insert(open.segment);
    if let Some(next) = start.record.next {
        chain.entry(open.sequence + 1).or_insert(next);
    }
    std::thread::scope(|scope| {
        let source = Source::start(scope, start.device, start.backing)?;
        let mut walk = Walk::new(start, chain, source).up_to(until);
        walk.run(&mut |_| Ok(())).map(drop)
    })
}

//! A store whose primary and one backup are simulated devices, cut at every moment of their stream.
//!
//! - [`backup`]: a backup whose work lags behind what it has received as a seed decides, with all of its moments
//! - [`sealed`]: a backup that is sealed, and how the end of its log is told
//! - [`pair`]: a primary and a backup under a script
//! - [`compare`]: what must be the same on both
//! - [`mod@stream_cuts`]: the stream ends at a packet; the backup is sealed, or loses its power
//! - [`mod@double_cuts`]: both lose their power, one of them goes on, and the other one has to follow
//! - [`mod@longer_logs`]: the one that has to follow has more log
//! - [`mod@joins`]: a member joins while the script goes on; it may be slow, and die; both may lose their power
//! - [`joiner`]: that member
//! - [`mod@followers`]: any packets, without a store

use std::time::Instant;

use crate::counts::Counts;

pub mod backup;
pub mod compare;
pub mod double_cuts;
pub mod followers;
pub mod joiner;
pub mod joins;
pub mod longer_logs;
pub mod pair;
pub mod sealed;
mod spread;
pub mod stream_cuts;

pub use double_cuts::double_cuts;
pub use followers::followers;
pub use joins::joins;
pub use longer_logs::longer_logs;
pub use stream_cuts::stream_cuts;

/// Tries `scripts` scripts from `seed` on, each in all of these ways; with `all` at every packet.
pub fn run(scripts: u64, seed: u64, all: bool) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    for seed in seed..seed.saturating_add(scripts) {
        counts.add(followers(seed));
        counts.add(stream_cuts(seed, all));
        counts.add(double_cuts(seed));
        counts.add(longer_logs(seed));
        counts.add(joins(seed));
    }
    counts.elapsed = started.elapsed();
    counts
}

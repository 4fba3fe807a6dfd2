//! Primaries frozen for three sessions, one after the other: nobody may see what was before.

use std::time::Duration;

use crate::cluster::settings::Settings;
use crate::faults::class::Class;
use crate::run::{Run, Suffered, pass};

/// Pauses of one stretch.
const STRETCH: u64 = 5;

/// Freezes primaries `count` times.
///
/// # Errors
/// What must not be.
pub fn pauses(run: &mut Run<'_>, count: u64) -> Result<(), String> {
    let mut left = count;
    while left > 0 {
        let now = left.min(STRETCH);
        run.stretch(|actor, shared| {
            let mut suffered = Suffered::default();
            for _ in 0..now {
                actor.view.wait_until_whole(Settings::PATIENCE)?;
                pass(actor.cluster, shared, Duration::from_millis(300))?;
                let hold = actor.happen(Class::Pause, false, shared, &mut suffered.faults)?;
                pass(actor.cluster, shared, hold)?;
                actor.mend_before_witnesses(shared, &mut suffered)?;
            }
            pass(actor.cluster, shared, Duration::from_secs(1))?;
            Ok(suffered)
        })?;
        run.figures.pauses += now;
        left -= now;
        println!("{} pauses of {count}", count - left);
    }
    Ok(())
}

//! Volumes of KVell that are damaged.
//!
//! - `fixture`: volumes with all structures
//! - `judge`: what a store says about damage, and whether it may
//!
//! What cannot be told is a sector that is again what it was before, or blank: a lost write. There is one copy of each item
//! and no log, so nothing else says that there was a newer one. Then a key may have an earlier value or none; never another.

mod fixture;
mod judge;

use std::sync::Arc;

use kreon_base::Result;
use kreon_sim::{Image, SimDevice};

use self::fixture::Fixture;
use self::judge::Outcome;
use super::store::Kvell;
use crate::damage::hurt::Hurt;
use crate::engines::Damaged;
use crate::engines::damage::Judged;
use crate::watchdog::without_panic;

impl Damaged for Kvell {
    const FIXTURES: &'static [&'static str] = &fixture::NAMES;
    const HAS_PAGES: bool = false;
    type Fixture = Fixture;
    /// An open store, and its device.
    type Kept = (Kvell, Arc<SimDevice>);
    type Outcome = Outcome;

    fn make(name: &str) -> Result<Fixture> {
        fixture::make(name)
    }

    fn images(fixture: &Fixture) -> (&Image, &Image) {
        (&fixture.image, &fixture.older)
    }

    fn keep(fixture: &Fixture) -> Result<Self::Kept> {
        let device = fixture::device(fixture.image.clone());
        Ok((fixture.open(&device)?, device))
    }

    fn judge(fixture: &Fixture, (store, device): &Self::Kept, hurt: &Hurt) -> Vec<Judged<Outcome>> {
        let live = || judge::live(fixture, (store, device), hurt);
        vec![
            (", opened", without_panic(|| judge::reopened(fixture, hurt))),
            (", open", without_panic(live)),
        ]
    }
}

//! Volumes of Tucana that are damaged. A store is never wrong, not even where a sector is again what it was before.
//!
//! - `fixture`: volumes with all structures
//! - `judge`: what a store says about damage, and whether it may

mod fixture;
mod judge;

use kreon_base::Result;
use kreon_sim::Image;

use self::fixture::Fixture;
use self::judge::Outcome;
use super::store::Tucana;
use crate::damage::hurt::Hurt;
use crate::engines::Damaged;
use crate::engines::damage::Judged;
use crate::watchdog::without_panic;

impl Damaged for Tucana {
    const FIXTURES: &'static [&'static str] = &fixture::NAMES;
    const HAS_PAGES: bool = true;
    type Fixture = Fixture;
    type Kept = ();
    type Outcome = Outcome;

    fn make(name: &str) -> Result<Fixture> {
        fixture::make(name)
    }

    fn images(fixture: &Fixture) -> (&Image, &Image) {
        (&fixture.image, &fixture.older)
    }

    fn keep(_: &Fixture) -> Result<()> {
        Ok(())
    }

    fn judge(fixture: &Fixture, (): &(), hurt: &Hurt) -> Vec<Judged<Outcome>> {
        vec![("", without_panic(|| judge::reopened(fixture, hurt)))]
    }
}

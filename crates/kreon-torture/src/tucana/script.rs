//! What stores of Tucana do while calls of the device fail.
//!
//! The next opening finds the last commit that ended, or the one that failed; if the log is replayed, a prefix of the changes with
//! all that were durable.

use std::sync::Arc;

use kreon_base::Error;
use kreon_judge::Version;
use kreon_sim::{Dice, Image, Keep, SimDevice};

use super::compare::{Wrong, contents};
use super::model::{Journal, Pairs};
use super::pattern::Pattern;
use super::session::{Moment, Session, excused};
use super::setting::Setting;
use super::store::Tucana;
use crate::engines::{Durability, Engine, Scripted};

/// A volume, and what its keys have.
pub struct Volume {
    setting: Setting,
    image: Image,
    pairs: Pairs,
    version: Version,
}

impl Scripted for Tucana {
    const PARTIAL_SECTORS: u64 = 3;
    const IS_REPEATABLE: bool = true;
    type Volume = Volume;
    type Model = Journal;

    fn new_volume(seed: u64) -> Volume {
        let setting = Setting::of_faults(seed);
        Volume {
            image: Image::default(),
            pairs: vec![None; setting.keys.len()],
            version: 0,
            setting,
        }
    }

    fn used_volume(volume: &Volume, image: Image, _: &Journal) -> Result<Volume, Wrong> {
        let setting = volume.setting.clone();
        let told = |error: Error| error.to_string();
        let store = setting.open(&setting.device(image.clone(), false));
        let pairs = contents(&store.map_err(told)?, &setting.keys).map_err(told)??;
        Ok(Volume {
            setting,
            image,
            pairs,
            version: 1 << 40,
        })
    }

    fn device(volume: &Volume, _seed: u64) -> Arc<SimDevice> {
        volume.setting.device(volume.image.clone(), true)
    }

    fn script(volume: &Volume, device: &Arc<SimDevice>, seed: u64) -> Result<Journal, Wrong> {
        let setting = &volume.setting;
        let mut dice = Dice::new(seed);
        let store = match setting.open(device) {
            Ok(store) => store,
            Err(error) => {
                excused("an opening", &error, device, setting)?;
                return Ok(Journal::new(setting.recovery, volume.pairs.clone()));
            }
        };
        let held = (volume.pairs.clone(), volume.version);
        let mut session = Session::new(&store, device, setting, held);
        session.compare_all(&mut dice)?;
        if volume.version == 0 {
            session.fill(&mut dice)?;
        }
        let mut pattern = Pattern::new(&mut dice, setting.keys.len());
        for _ in 0..setting.steps {
            session.step(&mut dice, &mut pattern)?;
        }
        session.commit()?;
        session.verify()?;
        session.compare_all(&mut dice)?;
        let (mut journal, _, _) = session.end(&mut dice)?;
        let begin = Moment::of(device);
        let outcome = store.close();
        begin.note(device, outcome.is_ok(), &mut journal);
        outcome.or_else(|error| excused("a close", &error, device, setting))?;
        Ok(journal)
    }

    fn check(
        volume: &Volume,
        journal: &Journal,
        device: &SimDevice,
        mut keep: Keep,
    ) -> Result<(), Wrong> {
        let setting = &volume.setting;
        let history = device.history();
        let events = history.events.len();
        let image = history.crash_after(events).image(&mut keep);
        let within = |error: Error| format!("after {keep:?}: {error}");
        let store = setting
            .open(&setting.device(image, false))
            .map_err(within)?;
        let found = contents(&store, &setting.keys).map_err(within)??;
        let outcome = journal.judge(&found, events);
        outcome.map_err(|what| format!("after {keep:?}: {what}"))?;
        store.verify().map_err(within)?;
        store
            .change(&setting.keys[0], Some(b""), Durability::Buffered)
            .map_err(within)?;
        store.close().map_err(within)
    }
}

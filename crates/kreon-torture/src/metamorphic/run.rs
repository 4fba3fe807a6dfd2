//! Operations under settings.

use std::time::Instant;

use kreon_sim::Dice;

use super::lane::Lane;
use super::operations::{Chapter, LANES, REGIONS, chapters};
use super::seen::Seen;
use super::settings::Settings;
use super::shrink::shrink;
use super::store::{Store, region_name};
use crate::content::Content;
use crate::counts::Counts;
use crate::watchdog::{Watchdog, without_panic};

/// Under so many courses of settings the operations of one seed run.
const COURSES: u64 = 4;

/// Tries `runs` courses of settings; every `COURSES` of them do the operations of one seed, from `seed`
/// on. Stops at the first failure.
pub fn metamorphic(runs: u64, seed: u64) -> Counts {
    let started = Instant::now();
    let watchdog = Watchdog::start();
    let mut counts = Counts::default();
    for run in 0..runs {
        let (seed, course) = (seed + run / COURSES, run % COURSES);
        let label = format!("--seed {seed} --course {course}");
        watchdog.begin(&label);
        if let Err(what) = one(seed, course, &mut counts) {
            counts.fail(format!("{label}: {what}"));
            break;
        }
    }
    counts.elapsed = started.elapsed();
    counts
}

/// Tries one course of settings again.
pub fn replay(seed: u64, course: u64) -> Counts {
    let started = Instant::now();
    let mut counts = Counts::default();
    if let Err(what) = one(seed, course, &mut counts) {
        counts.fail(what);
    }
    counts.elapsed = started.elapsed();
    counts
}

fn one(seed: u64, course: u64, counts: &mut Counts) -> Result<(), String> {
    let all = chapters(seed);
    let settings_seed = seed.rotate_left(24) ^ course.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let attempt = |chapters: &[Chapter]| without_panic(|| run(chapters, settings_seed));
    match attempt(&all) {
        Ok(place) => {
            let operations = all.iter().flat_map(|chapter| &chapter.lanes).map(Vec::len);
            let class = format!("operations on a {place}");
            *counts.tried.entry(class).or_default() += operations.sum::<usize>() as u64;
            Ok(())
        }
        Err(what) => Err(format!("{what}\n{}", shrink(all, &attempt))),
    }
}

/// One course: what is done under settings that change between chapters. Says where.
fn run(chapters: &[Chapter], settings_seed: u64) -> Result<&'static str, String> {
    let mut dice = Dice::new(settings_seed);
    let mut store = Store::new(&mut dice).map_err(|error| error.to_string())?;
    let any_settings = |dice: &mut Dice, store: &Store| match store.is_file() {
        true => Settings::any(dice).with_slow_flushes(),
        false => Settings::any(dice),
    };
    let mut settings = any_settings(&mut dice, &store);
    let mut lanes: [Lane; LANES] = std::array::from_fn(|number| Lane {
        number,
        ..Lane::default()
    });
    let mut is_open = false;
    for (number, chapter) in chapters.iter().enumerate() {
        let context = |settings: &Settings, what| format!("chapter {number} ({settings}): {what}");
        if !is_open {
            let opened = store.open(&settings);
            opened.map_err(|error| context(&settings, format!("open: {error}")))?;
            is_open = true;
        }
        let outcome = do_chapter(chapter, &mut lanes, &mut store, &settings);
        outcome.map_err(|what| context(&settings, what))?;
        if settings.reopens {
            settings = any_settings(&mut dice, &store);
            is_open = false;
        }
    }
    finish(&mut store, &lanes)?;
    Ok(store.name())
}

fn do_chapter(
    chapter: &Chapter,
    lanes: &mut [Lane; LANES],
    store: &mut Store,
    settings: &Settings,
) -> Result<(), String> {
    let engine = store.engine.as_ref().ok_or("the store is not open")?;
    let seen = Seen {
        engine,
        regions: &store.regions,
        settings,
    };
    let mut dealt: Vec<Vec<_>> = (0..settings.threads).map(|_| Vec::new()).collect();
    for (number, work) in lanes.iter_mut().zip(&chapter.lanes).enumerate() {
        dealt[number % settings.threads].push(work);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = dealt
            .into_iter()
            .map(|works| {
                scope.spawn(move || {
                    let mut works = works.into_iter();
                    works.try_for_each(|(lane, operations)| lane.run(operations, seen))
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| {
            let outcome = thread.join();
            outcome.map_err(|_| "PANIC of a lane".to_owned())?
        })
    })?;
    let expected = whole(lanes);
    store.check(&expected)?;
    if settings.holds_snapshots
        && let Some(engine) = &store.engine
    {
        store.snapshot = Some((engine.snapshot(), expected));
    }
    Ok(())
}

/// Verifies the store, and looks at it once more under the usual settings.
fn finish(store: &mut Store, lanes: &[Lane; LANES]) -> Result<(), String> {
    let expected = whole(lanes);
    for _ in 0..2 {
        store
            .open(&Settings::default())
            .map_err(|error| format!("the last open: {error}"))?;
        store
            .check(&expected)
            .map_err(|what| format!("at the end: {what}"))?;
        let engine = store.engine.as_ref().ok_or("the store is not open")?;
        let report = engine.verify().map_err(|error| error.to_string())?;
        if let Some(first) = report.problems.first() {
            let count = report.problems.len();
            return Err(format!("verify: {count} problems: {first}"));
        }
        // Once with a log to replay, once without.
        engine.checkpoint().map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn whole(lanes: &[Lane; LANES]) -> Content {
    let mut content = Content::new();
    for region in 0..REGIONS {
        let pairs = lanes.iter().flat_map(|lane| &lane.pairs[region]);
        let pairs = pairs.map(|(key, value)| (key.clone(), *value)).collect();
        content.insert(region_name(region), pairs);
    }
    content
}

//! Whether the store that a power cut left is what it must be.

use std::collections::BTreeMap;

use kreon_base::Error;
use kreon_engine::{Durability, Engine, Options};
use kreon_sim::{Image, Keep};

use crate::content::{self, Content, difference};
use crate::course::Course;
use crate::model::{Model, Prefix};
use crate::progress::Progress;
use crate::reading;
use crate::script::{Change, Lifetime, Step, Value};
use crate::settings::{options, options_of_check};
use crate::store::Store;

/// What a recovery found and did.
pub struct Recovered {
    /// What the store held.
    pub content: Content,
    /// What the open did to the device and then the further work, if it was recorded.
    pub course: Option<Course>,
}

/// How to go on after the recovery.
#[derive(Clone, Copy, Debug)]
pub enum After {
    /// Not at all.
    Nothing,
    /// Put, checkpoint, close, open.
    Checkpoint,
    /// Put with `Sync`, cut the power, keep only what was flushed, open.
    PowerCut,
}

/// Opens `image` and checks it against what `model` allows within `progress`; then goes on with
/// `after`.
///
/// # Errors
/// What is wrong.
pub fn check(
    image: Image,
    model: &Model,
    progress: Progress,
    after: After,
    record: bool,
) -> Result<Recovered, String> {
    check_with(options(), image, model, progress, after, record)
}

/// As [`check`], opened with `options`.
///
/// # Errors
/// What is wrong.
pub fn check_with(
    options: Options,
    image: Image,
    model: &Model,
    progress: Progress,
    after: After,
    record: bool,
) -> Result<Recovered, String> {
    let keeps_record = record || matches!(after, After::PowerCut);
    let before = image.clone();
    let mut store = Store::on(image, &Content::new(), keeps_record).with(options.clone());
    let engine = store.open().map_err(said("open"))?;
    let content = content::read(engine).map_err(said("read"))?;
    // A part of the states: it costs as much as the opening for writing.
    if before.digest().is_multiple_of(4) {
        reading::check(&before, &options, &content)?;
    }
    let units = progress.durable_units..=progress.begun_units;
    let region_changes = progress.durable_region_changes..=progress.begun_region_changes;
    if model.find(&content, units, region_changes).is_none() {
        return Err(lost(model, progress, &content));
    }
    if engine.stats().found_damaged_image {
        return Err("the image of L0 was not whole".to_owned());
    }
    is_sound(engine, &content)?;
    store.rebase(&content);
    let opened = store.device.events();
    go_on(&mut store, after)?;
    let course = record.then(|| {
        // A power cut before this left exactly the content; nothing was begun.
        store.timeline.retain(|(at, _)| *at >= opened);
        store.timeline.insert(0, (0, Progress::default()));
        Course::of(&mut store, opened)
    });
    Ok(Recovered { content, course })
}

/// Checks that `image` holds `content` exactly.
///
/// # Errors
/// What is wrong.
pub fn check_same(image: Image, content: &Content) -> Result<(), String> {
    let mut store = Store::on(image, content, false).with(options_of_check());
    let engine = store.open().map_err(said("open"))?;
    let found = content::read(engine).map_err(said("read"))?;
    if found != *content {
        return Err(format!(
            "not what was there: {}",
            difference(content, &found)
        ));
    }
    is_sound(engine, content)
}

/// Gets and backward scans agree, and a verification finds nothing wrong.
pub fn is_sound(engine: &Engine, content: &Content) -> Result<(), String> {
    content::cross_check(engine, content).map_err(said("read"))??;
    let report = engine.verify().map_err(said("verify"))?;
    match report.problems.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "verify: {} problems: {first}",
            report.problems.len()
        )),
    }
}

fn lost(model: &Model, progress: Progress, content: &Content) -> String {
    let least = Prefix {
        units: progress.durable_units,
        region_changes: progress.durable_region_changes,
    };
    let most = Prefix {
        units: progress.begun_units,
        region_changes: progress.begun_region_changes,
    };
    format!(
        "no prefix within {progress:?}; from the least: {}; from the most: {}; any prefix at all: {:?}",
        difference(&model.content(least), content),
        difference(&model.content(most), content),
        model.find_in_any_order(
            content,
            0..=model.end().units,
            0..=model.end().region_changes
        ),
    )
}

/// Further work on a store that was recovered.
///
/// # Errors
/// What is wrong.
pub fn go_on(store: &mut Store, after: After) -> Result<(), String> {
    if matches!(after, After::Nothing) {
        return Ok(());
    }
    for step in further_steps(store) {
        store
            .step(&step)?
            .map_err(|error| format!("after the recovery, {step:?}: {error}"))?;
    }
    let expected = store.model.content(store.model.end());
    match after {
        After::Nothing => Ok(()),
        After::Checkpoint => {
            for step in [Step::Checkpoint, Step::Reopen] {
                store
                    .step(&step)?
                    .map_err(|error| format!("after the recovery, {step:?}: {error}"))?;
            }
            let engine = store.engine().map_err(said("open"))?;
            let found = content::read(engine).map_err(said("read"))?;
            if found != expected {
                return Err(format!(
                    "after a checkpoint: {}",
                    difference(&expected, &found)
                ));
            }
            is_sound(engine, &expected)
        }
        After::PowerCut => {
            let history = store.device.history();
            store.abandon();
            check_same(history.crash().image(&mut Keep::Nothing), &expected)
                .map_err(|what| format!("after puts and a second power cut: {what}"))
        }
    }
}

fn further_steps(store: &Store) -> Vec<Step> {
    let content = store.model.content(store.model.end());
    let held: BTreeMap<_, _> = content
        .iter()
        .filter_map(|(name, pairs)| Some((name.clone(), pairs.keys().next()?.clone())))
        .collect();
    let put = |region: &str, key: &str, len_bytes| Change {
        region: region.to_owned(),
        key: key.as_bytes().to_vec(),
        value: Some(Value {
            len_bytes,
            seed: 99,
        }),
        until: None,
        lifetime: Lifetime::Unlimited,
    };
    let mut steps = vec![Step::Create("after".to_owned())];
    steps.push(Step::Write(
        vec![put("after", "short", 5)],
        Durability::Buffered,
    ));
    let mut batch = vec![put("after", "long", 9000), put("after", "key", 1000)];
    for (region, key) in held {
        batch.push(Change {
            region,
            key,
            value: None,
            until: None,
            lifetime: Lifetime::Unlimited,
        });
    }
    steps.push(Step::Write(batch, Durability::Buffered));
    steps.push(Step::Collect);
    steps.push(Step::Write(
        vec![put("after", "last", 700)],
        Durability::Sync,
    ));
    steps
}

/// Names what failed.
pub fn said(what: &str) -> impl Fn(Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

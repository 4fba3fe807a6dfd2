//! What a store may say after its device lied: a write was lost, went elsewhere, or changed on its way.

use std::collections::BTreeSet;

use kreon_base::{Error, ErrorKind};
use kreon_engine::Engine;
use kreon_sim::Image;

use crate::content::{self, Content, Digest};
use crate::model::{Model, Prefix};
use crate::progress::Progress;
use crate::store::Store;

/// What is known of the lie.
#[derive(Clone, Copy, Debug)]
pub struct Lie {
    /// Before the call in which it was told.
    pub before: Progress,
    /// At the end.
    pub now: Progress,
    /// Something was acknowledged as durable by a call after that one: what the log says there proves
    /// that more was durable before.
    pub is_proven: bool,
}

/// Opens `image` and reads everything: each answer is right or `Corruption`. What the lie itself was
/// about may be gone as if it had never been written, if nothing behind it tells otherwise.
///
/// # Errors
/// What is wrong.
pub fn judge(image: Image, model: &Model, lie: &Lie) -> Result<(), String> {
    let mut store = Store::on(image, &Content::new(), false);
    let engine = match store.open() {
        Ok(engine) => engine,
        Err(error) => return is_corruption("open", &error),
    };
    let report = engine
        .verify()
        .map_err(|error| format!("verify: {error}"))?;
    match content::read(engine) {
        Ok(found) => {
            is_prefix(&found, model, lie)?;
            match content::cross_check(engine, &found) {
                Ok(outcome) => outcome,
                Err(error) => is_corruption("get", &error),
            }
        }
        Err(error) if report.is_clean() => {
            Err(format!("verify is clean, but a scan fails: {error}"))
        }
        Err(error) => {
            is_corruption("scan", &error)?;
            gets_are_right(engine, model, lie)
        }
    }
}

fn is_corruption(what: &str, error: &Error) -> Result<(), String> {
    match error.kind() {
        ErrorKind::Corruption => Ok(()),
        _ => Err(format!("{what}: {error}")),
    }
}

fn is_prefix(found: &Content, model: &Model, lie: &Lie) -> Result<(), String> {
    let (before, now) = (lie.before, lie.now);
    let units = before.durable_units..=now.begun_units;
    let region_changes = before.durable_region_changes..=now.begun_region_changes;
    match model.find_in_any_order(found, units, region_changes) {
        Some(prefix) if prefix.units < now.durable_units && lie.is_proven => Err(format!(
            "units are gone that something behind them proves: {prefix:?} of {now:?}"
        )),
        Some(_) => Ok(()),
        None => {
            let expected = model.content(model.end());
            let text = content::difference(&expected, found);
            Err(format!("wrong without an error, {lie:?}: {text}"))
        }
    }
}

/// Of a store that cannot be read in a row every single key is right or `Corruption`.
fn gets_are_right(engine: &Engine, model: &Model, lie: &Lie) -> Result<(), String> {
    let mut allowed: BTreeSet<(String, Vec<u8>, Option<Digest>)> = BTreeSet::new();
    let mut keys: BTreeSet<(String, Vec<u8>)> = BTreeSet::new();
    let contents: Vec<_> = (lie.before.durable_units..=lie.now.begun_units)
        .flat_map(|units| {
            let changes = lie.before.durable_region_changes..=lie.now.begun_region_changes;
            changes.map(move |region_changes| Prefix {
                units,
                region_changes,
            })
        })
        .map(|prefix| model.content(prefix))
        .collect();
    for (name, pairs) in contents.iter().flatten() {
        keys.extend(pairs.keys().map(|key| (name.clone(), key.clone())));
    }
    for (name, key) in &keys {
        for content in &contents {
            let value = content.get(name).and_then(|pairs| pairs.get(key));
            allowed.insert((name.clone(), key.clone(), value.copied()));
        }
    }
    for (name, key) in keys {
        let Ok(region) = engine.existing_region(&name) else {
            continue;
        };
        match engine.get(&region, &key, None, Digest::of) {
            Err(error) => is_corruption("get", &error)?,
            Ok(value) if allowed.contains(&(name.clone(), key.clone(), value)) => {}
            Ok(value) => {
                return Err(format!(
                    "get of {} in {name}: {value:?}",
                    key.escape_ascii()
                ));
            }
        }
    }
    Ok(())
}

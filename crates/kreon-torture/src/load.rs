//! Bulk loads in a script, and what the model says of them.

use std::collections::BTreeSet;

use kreon_base::{Error, ErrorKind, Result};
use kreon_engine::Pairs;

use crate::content::Digest;
use crate::script::{Change, Handed, Lifetime, Step};
use crate::store::Store;

/// Carries out a load. It counts as a unit behind what is written while its pairs are handed in, and leaves
/// the keys of that as they are. An inner error is what the store said; the model says that the load happened.
///
/// # Errors
/// What the store should not have done.
pub fn ingest(
    store: &mut Store,
    region: &str,
    handed: &[Handed],
) -> std::result::Result<Result<()>, String> {
    let found = store
        .shared_engine()
        .and_then(|engine| Ok((engine.existing_region(region)?, engine)));
    let (state, engine) = match found {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let mut load = Load {
        store,
        region,
        rest: handed,
        all: handed,
        key: Vec::new(),
        value: Vec::new(),
        is_begun: false,
        wrong: None,
    };
    let outcome = engine.ingest(&state, &mut load);
    if let Some(what) = load.wrong {
        return Err(format!("beside a load: {what}"));
    }
    load.begin();
    if outcome.is_ok() {
        store.all_durable();
    }
    Ok(outcome.map(drop))
}

/// A load under way.
struct Load<'a> {
    store: &'a mut Store,
    region: &'a str,
    rest: &'a [Handed],
    all: &'a [Handed],
    key: Vec<u8>,
    value: Vec<u8>,
    /// The model has it.
    is_begun: bool,
    /// What the store did meanwhile and should not have done.
    wrong: Option<String>,
}

impl Load<'_> {
    /// From here on it may be found after a power cut.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.is_begun, true) || self.all.is_empty() {
            return;
        }
        let done = self.all.len() - self.rest.len();
        let beside = self.all.iter().take(done).flat_map(|handed| &handed.before);
        let beside = beside.filter(|step| !self.store.is_moot(step));
        let changes = beside.flat_map(|step| match step {
            Step::Write(changes, _) => changes.as_slice(),
            _ => &[],
        });
        let beside: Vec<_> = changes
            .filter(|change| change.region == self.region)
            .collect();
        let single = beside.iter().filter(|change| change.until.is_none());
        let written: BTreeSet<_> = single.map(|change| change.key.as_slice()).collect();
        let counts = |handed: &&Handed| {
            let key = handed.key.as_slice();
            !written.contains(key) && !beside.iter().any(|change| change.erases(key))
        };
        let changes = self.all.iter().filter(counts).map(|handed| Change {
            region: self.region.to_owned(),
            key: handed.key.clone(),
            value: Some(handed.value),
            until: None,
            lifetime: Lifetime::Unlimited,
        });
        let changes: Vec<_> = changes.collect();
        let digest = |change: &Change| change.value.map(|value| Digest::of(&value.bytes()));
        let digests: Vec<_> = changes.iter().map(digest).collect();
        self.store.model.load(&changes, &digests);
        self.store.progress.begun_units += 1;
        self.store.note();
    }
}

impl Pairs for Load<'_> {
    fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let Some((handed, rest)) = self.rest.split_first() else {
            self.begin();
            return Ok(None);
        };
        self.rest = rest;
        for step in &handed.before {
            match self.store.beside(step) {
                Ok(said) => said?,
                Err(what) => {
                    self.wrong = Some(format!("{step:?}: {what}"));
                    let error = Error::new(ErrorKind::InvalidArgument, "the harness gives up");
                    return Err(error);
                }
            }
        }
        self.key.clone_from(&handed.key);
        self.value = handed.value.bytes();
        Ok(Some((&self.key, &self.value)))
    }
}

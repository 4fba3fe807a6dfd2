//! `kreon stats`: what the store holds and has done.

mod figures;
mod kvell;
mod place;
mod summary;
mod tucana;

use clap::Args;
use kreon::{ErrorKind, StoreStatus};
use serde_json::Value;

use crate::failure::{Code, Failure, Result};
use crate::options::{Shared, Target};
use crate::session::Session;
use crate::sink::Sink;
use place::Place;

/// Print what the store holds and how it is, in a few lines
///
/// If another process has the store open, that process tells, and what it did since it opened the store is told too.
#[derive(Debug, Args)]
pub struct Stats {
    /// All tables, with what the store did since it was opened
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Everything as one JSON object, with sizes in bytes (docs/stats.md lists the fields)
    #[arg(long)]
    json: bool,
    /// Everything as metrics for Prometheus (docs/observability.md lists them)
    #[arg(long, conflicts_with_all = ["json", "all"])]
    prometheus: bool,
}

impl Stats {
    /// Of a store that this process opened.
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        if let crate::place::Place::Kvell(store) = &session.place {
            let text = self.of_kvell(store, session)?;
            return Ok(out.write(text.as_bytes())?);
        }
        if let crate::place::Place::Tucana(store) = &session.place {
            let text = self.of_tucana(store, session)?;
            return Ok(out.write(text.as_bytes())?);
        }
        let store = session.place.store()?;
        let stats = store.stats();
        let text = match (self.prometheus, self.all) {
            (true, _) => stats.to_prometheus(),
            (_, true) => stats.to_string(),
            _ => self.document(
                &stats.to_json(&store.region_names()),
                Place::at(session.path()),
            )?,
        };
        Ok(out.write(text.as_bytes())?)
    }

    fn of_kvell(&self, store: &::kvell::Store, session: &Session) -> Result<String> {
        let stats = store.stats();
        if self.prometheus {
            return Ok(kvell::prometheus(&stats));
        }
        let mut figures = kvell::json(&stats, store.region_names()?);
        Place::at(session.path()).add_to(&mut figures);
        Ok(match self.json {
            true => figures.to_string() + "\n",
            false => kvell::lines(&figures),
        })
    }

    fn of_tucana(&self, store: &::tucana::Store, session: &Session) -> Result<String> {
        if self.prometheus {
            return Ok(tucana::prometheus(store));
        }
        let mut figures = tucana::json(store, store.region_names()?);
        Place::at(session.path()).add_to(&mut figures);
        Ok(match self.json {
            true => figures.to_string() + "\n",
            false => tucana::lines(&figures),
        })
    }

    /// Of a store that another process has open and tells of; none: that is not so.
    pub fn run_elsewhere(&self, shared: &Shared, out: &mut Sink) -> Result<Option<()>> {
        let Ok(Target::Store(path)) = shared.target() else {
            return Ok(None);
        };
        // What is wrong with the path, the opening tells better.
        let status = match StoreStatus::of(&path) {
            Ok(Some(status)) => status,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error.into()),
            _ => return Ok(None),
        };
        let document;
        let text = match (self.prometheus, self.all) {
            (true, _) => status.prometheus(),
            (_, true) => status.table(),
            _ => {
                document = self.document(status.json(), Place::at(&path))?;
                &document
            }
        };
        Ok(Some(out.write(text.as_bytes())?))
    }

    /// The figures in JSON, with what is known of the place, as they are or in a few lines.
    fn document(&self, json: &str, place: Place) -> Result<String> {
        let mut figures: Value = serde_json::from_str(json)
            .map_err(|error| Failure::new(Code::Other, format!("figures: {error}"), ""))?;
        place.add_to(&mut figures);
        Ok(match self.json {
            true => figures.to_string() + "\n",
            false => summary::lines(&figures),
        })
    }
}

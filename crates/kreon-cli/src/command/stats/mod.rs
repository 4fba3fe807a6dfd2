//! `kreon stats`: what the store holds and has done.

mod json;
mod place;
mod summary;

use clap::Args;

use crate::failure::Result;
use crate::session::Session;
use crate::sink::Sink;
use place::Place;

/// Print what the store holds and how it is, in a few lines
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
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let store = session.place.store()?;
        let stats = store.stats();
        if self.prometheus {
            return Ok(out.write(stats.to_prometheus().as_bytes())?);
        }
        let place = Place::of(session, store, &stats);
        let text = match (self.json, self.all) {
            (true, _) => json::as_json(&stats, &place).to_string() + "\n",
            (false, true) => stats.to_string(),
            (false, false) => summary::lines(&stats, &place),
        };
        Ok(out.write(text.as_bytes())?)
    }
}

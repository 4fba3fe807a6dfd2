//! `kreon changes`: what was written, in order.

use std::time::UNIX_EPOCH;

use clap::Args;
use kreon::{Change, ChangeUnit, Changed, ErrorKind, Position};
use serde_json::{Map, Value, json};

use crate::encoding::{Controls, Encoding};
use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::sink::Sink;

/// Print what was written and is durable, in the order of the writes, as far as the store keeps its log
///
/// One change a line: the position behind its unit, the region, what was done, key and value, with tabs between them. Changes
/// with the same position were applied together. The program that writes the store says how much is kept
/// (`changes_kept_bytes`); commands of `kreon` that write keep nothing, and give up what was kept. A store that another process
/// has open for writing is busy.
#[derive(Debug, Args)]
pub struct Changes {
    /// Begin behind the unit with this position [default: the oldest one that is kept]
    #[arg(long, value_name = "POSITION")]
    from: Option<Position>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    /// Print no changes but how many units and changes there are, and the position behind them
    #[arg(long, conflicts_with = "json")]
    count: bool,
}

impl Changes {
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<()> {
        let store = session.place.store()?;
        let from = match self.from {
            Some(from) => from,
            None => store.changes_start()?,
        };
        let mut changes = store.changes(from).map_err(refused)?;
        let (mut units, mut count) = (0u64, 0u64);
        for unit in &mut changes {
            session.interrupt.check()?;
            let unit = unit.map_err(refused)?;
            (units, count) = (units + 1, count + unit.changes.len() as u64);
            if !self.count {
                self.print(&unit, session, out)?;
            }
        }
        if self.count {
            out.line(&format!("{units:>16} units"))?;
            out.line(&format!("{count:>16} changes"))?;
            out.line(&format!("{:>16} position", changes.position()))?;
        }
        Ok(())
    }

    fn print(&self, unit: &ChangeUnit, session: &Session, out: &mut Sink) -> Result<()> {
        for change in &unit.changes {
            let line = match self.json {
                true => object(unit.end, change, session).to_string(),
                false => line(unit.end, change, session),
            };
            out.line(&line)?;
        }
        Ok(())
    }
}

/// A position that is not kept is no missing region.
fn refused(error: kreon::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => Failure::usage(error.to_string()),
        _ => error.into(),
    }
}

/// What was done, and the key, value or bounds that it was done to, each with its name.
fn told(change: &Change) -> (&'static str, Vec<(&'static str, Part<'_>)>) {
    match &change.what {
        Changed::Put { key, value, .. } => (
            "put",
            vec![("key", Part::Key(key)), ("value", Part::Value(value))],
        ),
        Changed::Delete { key } => ("delete", vec![("key", Part::Key(key))]),
        Changed::DeleteRange { start, end } => {
            let end = end.as_ref().map(|end| ("end", Part::Key(end)));
            let start = ("start", Part::Key(start));
            ("delete-range", [start].into_iter().chain(end).collect())
        }
        Changed::Made => ("make-region", Vec::new()),
        Changed::Dropped => ("drop-region", Vec::new()),
        Changed::Loaded { first, last } => (
            "load",
            vec![("first", Part::Key(first)), ("last", Part::Key(last))],
        ),
        _ => ("other", Vec::new()),
    }
}

/// Bytes, and by which encoding they are shown.
enum Part<'a> {
    Key(&'a [u8]),
    Value(&'a [u8]),
}

impl Part<'_> {
    fn text(&self, session: &Session) -> String {
        let (encoding, bytes): (Encoding, &[u8]) = match self {
            Part::Key(key) => (session.key_encoding, key),
            Part::Value(value) => (session.value_encoding, value),
        };
        let mut text = Vec::new();
        encoding
            .in_lists()
            .encode_into(bytes, Controls::Escape, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

fn region(change: &Change) -> String {
    match &change.name {
        Some(name) => name.to_string(),
        // It was dropped.
        None => format!("#{}", change.region),
    }
}

fn line(end: Position, change: &Change, session: &Session) -> String {
    let (what, parts) = told(change);
    let mut line = format!("{end}\t{}\t{what}", region(change));
    for (_, part) in parts {
        line.push('\t');
        line.push_str(&part.text(session));
    }
    line
}

fn object(end: Position, change: &Change, session: &Session) -> Value {
    let (what, parts) = told(change);
    let mut object = Map::new();
    object.insert("position".to_owned(), json!(u64::from(end)));
    object.insert("region".to_owned(), json!(region(change)));
    object.insert("what".to_owned(), json!(what));
    for (name, part) in parts {
        object.insert(name.to_owned(), json!(part.text(session)));
    }
    if let Changed::Put {
        expires: Some(expires),
        ..
    } = &change.what
    {
        let since = expires.duration_since(UNIX_EPOCH).unwrap_or_default();
        object.insert("expires_ms".to_owned(), json!(since.as_millis() as u64));
    }
    Value::Object(object)
}

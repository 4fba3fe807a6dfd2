//! What an engine has beside `kreon`: numbers with their names, as an object and as metrics.

use kreon_base::metrics::{Number, push_metric};
use serde_json::{Map, Value};

/// A number: its name, what it tells, what it is.
pub type Figure = (&'static str, &'static str, u64);

/// An object with the name of the engine and its figures.
pub fn object(engine: &str, figures: &[Figure]) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("engine".to_owned(), engine.into());
    for (name, _, value) in figures {
        object.insert((*name).to_owned(), (*value).into());
    }
    object
}

/// Metrics for Prometheus; their names begin with that of the engine.
pub fn metrics(engine: &str, figures: &[Figure]) -> String {
    let mut text = String::new();
    for (name, help, value) in figures {
        let name = format!("{engine}_{name}");
        push_metric(
            &mut text,
            (&name, help),
            [(String::new(), Number::Whole(*value))],
        );
    }
    text
}

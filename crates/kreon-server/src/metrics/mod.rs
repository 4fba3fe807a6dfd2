//! Figures of the server: counted by its threads, shown by `INFO`, `LATENCY`, for Prometheus and on the status page.

mod history;
mod process;
mod prometheus;
mod recorder;

pub(crate) use history::History;
pub(crate) use process::Process;
pub(crate) use prometheus::{ServerFigures, text};
pub(crate) use recorder::{Answered, Outcome, Recorder, Recorders, Totals};

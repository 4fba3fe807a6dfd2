//! Figures of the server: counted by its threads, shown by `INFO`, `LATENCY`, for Prometheus and on the status page.

mod process;
mod recorder;

pub(crate) use process::Process;
pub(crate) use recorder::{Answered, Outcome, Recorder, Recorders, Totals};

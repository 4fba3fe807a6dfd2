//! `LATENCY`: how long commands took.

use bytes::Bytes;

use super::subcommand::{subcommand, unknown_subcommand};
use crate::command::find;
use crate::reply::{CommandError, Reply};
use crate::shared::Shared;

/// `LATENCY HISTOGRAM [command ...] | LATEST | RESET`. Events are not watched, so that the latest are none.
pub(super) fn latency(shared: &Shared, args: &[Bytes]) -> Result<Reply, CommandError> {
    match (subcommand(args).as_str(), args.get(2..).unwrap_or_default()) {
        ("histogram", names) => Ok(histograms(shared, names)),
        ("latest", []) | ("history", [_]) => Ok(Reply::Array(Vec::new())),
        ("reset", _) => Ok(Reply::Int(0)),
        _ => Err(unknown_subcommand(args)),
    }
}

/// For each command how many calls took at most 1, 2, 4 ... microseconds.
fn histograms(shared: &Shared, names: &[Bytes]) -> Reply {
    let asked: Vec<_> = names
        .iter()
        .filter_map(|name| find(name))
        .map(|found| found.id)
        .collect();
    let totals = shared.recorders.totals();
    let chosen = totals
        .commands
        .iter()
        .filter(|(command, _)| names.is_empty() || asked.contains(&command.id));
    let each = chosen.map(|(command, figures)| {
        let (times, calls) = (&figures.times_ns, figures.times_ns.len());
        let mut steps = Vec::new();
        for power in 0..36 {
            let upto_us = 1 << power;
            let count = times.count_between(0, upto_us * 1000);
            if count > 0 {
                steps.push((Reply::Int(upto_us as i64), Reply::Int(count as i64)));
            }
            if count >= calls {
                break;
            }
        }
        let figures = vec![
            (Reply::constant("calls"), Reply::Int(calls as i64)),
            (Reply::constant("histogram_usec"), Reply::Map(steps)),
        ];
        (Reply::constant(command.name), Reply::Map(figures))
    });
    Reply::Map(each.collect())
}

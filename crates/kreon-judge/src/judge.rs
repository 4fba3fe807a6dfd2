//! Is there an order of all calls, each at one moment between its beginning and its end, in which
//! every read sees the last write before it? Sound and complete: strict serializability of whole
//! calls, over all registers at once.

use crate::call::{Call, History, Verdict, Violation};
use crate::dense::{Dense, Event};
use crate::frontier::{Frontier, Stop};

/// Calls around a violation that are told.
const STORY_CALLS_MAX: usize = 24;

/// Judges `history`.
pub fn judge(history: &History) -> Verdict {
    judge_measured(history).0
}

/// Judges `history`; also tells how many explanations were possible at once, at most.
pub fn judge_measured(history: &History) -> (Verdict, usize) {
    let dense = match Dense::of(history) {
        Ok(dense) => dense,
        Err(violation) => return (Verdict::Wrong(violation), 0),
    };
    let mut frontier = Frontier::new(&dense);
    for event in &dense.events {
        let outcome = match event.is_return {
            false => frontier.begin(event.call),
            true => frontier.end(event.call),
        };
        let verdict = match outcome {
            Ok(()) => continue,
            Err(Stop::TooMany) => Verdict::Undecided,
            Err(Stop::Nothing) => Verdict::Wrong(explain(history, &dense, &frontier, event)),
        };
        return (verdict, frontier.widest);
    }
    (Verdict::Linearizable, frontier.widest)
}

fn explain(history: &History, dense: &Dense, frontier: &Frontier<'_>, event: &Event) -> Violation {
    let number = event.call as usize;
    let mut lines = Vec::new();
    let mut around = Vec::new();
    for &(register, wanted) in &dense.calls[number].reads {
        let possible = frontier.possible(register);
        if possible.contains(&wanted) {
            continue;
        }
        let all: Vec<_> = possible.iter().map(|held| dense.said(*held)).collect();
        let (register, wanted) = (dense.register(register), dense.said(wanted));
        lines.push(format!(
            "register {register:#x} showed {wanted}; without the calls under way it holds {}",
            all.join(" or ")
        ));
        around.push(register);
    }
    let call = history.calls.get(number);
    let what = call.map_or_else(|| "the recovery".to_owned(), said);
    if lines.is_empty() {
        lines.push("each thing that it saw was possible, but not all of them at one moment".into());
        around.extend(call.into_iter().flat_map(registers));
    }
    lines.truncate(6);
    let text = format!(
        "no order explains {what}\n  {}\n{}",
        lines.join("\n  "),
        story(history, &around, event.at)
    );
    Violation {
        call: call.map(|_| number),
        text,
    }
}

fn registers(call: &Call) -> impl Iterator<Item = u64> + '_ {
    let reads = call.reads.iter().map(|(register, _)| *register);
    reads.chain(call.writes.iter().map(|(register, _)| *register))
}

/// The last calls that had to do with some of `around`.
fn story(history: &History, around: &[u64], until: u64) -> String {
    let mut calls: Vec<_> = history
        .calls
        .iter()
        .filter(|call| call.invoked < until)
        .filter(|call| registers(call).any(|register| around.contains(&register)))
        .collect();
    calls.sort_unstable_by_key(|call| call.returned.unwrap_or(u64::MAX));
    let first = calls.len().saturating_sub(STORY_CALLS_MAX);
    let lines = calls.iter().skip(first).map(|call| {
        let mut short = Call::clone(call);
        short
            .reads
            .retain(|(register, _)| around.contains(register));
        short
            .writes
            .retain(|(register, _)| around.contains(register));
        // What a call did elsewhere may be what forbids its moment.
        let elsewhere = registers(call).count() - registers(&short).count();
        match elsewhere {
            0 => format!("    {}", said(&short)),
            _ => format!("    {} and {elsewhere} other registers", said(&short)),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn said(call: &Call) -> String {
    let mut parts = vec![format!(
        "{} of client {} [{}, {}]",
        call.what,
        call.client,
        call.invoked,
        call.returned
            .map_or("never".to_owned(), |at| at.to_string())
    )];
    let reads = call.reads.iter().take(8);
    parts.extend(reads.map(|(register, seen)| format!("{register:#x} -> {seen:?}")));
    let writes = call.writes.iter().take(8);
    parts.extend(writes.map(|(register, version)| format!("{register:#x} := {version:?}")));
    parts.join(" ")
}

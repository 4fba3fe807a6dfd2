//! What is written and noted of an answer.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::connection::Connection;
use crate::command::{Command, Flags};
use crate::metrics::{Answered, Outcome};
use crate::reply::Reply;
use crate::resp::encode;
use crate::shared::{SlowCommand, unix_s};

impl Connection {
    pub(super) fn note(&mut self, command: &'static Command, took: Duration, has_failed: bool) {
        self.answered.push(Answered {
            command,
            took,
            outcome: match has_failed {
                true => Outcome::Failed,
                false => Outcome::Done,
            },
        });
    }

    pub(super) fn reply(&mut self, reply: &Reply) {
        if let Reply::Error(error) = reply {
            self.worker.recorder.error(&error.0);
        }
        encode(reply, self.session.version, &mut self.output);
    }

    pub(super) fn note_slow(&self, command: &'static Command, args: &[Bytes], took: Duration) {
        let slow_log = &self.worker.shared.slow_log;
        // Their time is that of others.
        let is_kept = !args.is_empty() && !command.flags.has(Flags::BLOCKING);
        if is_kept && slow_log.takes(took) {
            slow_log.push(SlowCommand {
                id: 0,
                at_s: unix_s(),
                took,
                args: match command.flags.has(Flags::NO_AUTH) {
                    true => without_passwords(args),
                    false => args.to_vec(),
                },
                address: self.entry.address.clone(),
                name: self.entry.name.lock().clone(),
            });
        }
    }
}

/// Nothing but the name of `AUTH` and `HELLO`.
fn without_passwords(args: &[Bytes]) -> Vec<Bytes> {
    let mut shown = vec![Bytes::from_static(b"(redacted)"); args.len()];
    if let (Some(to), Some(name)) = (shown.first_mut(), args.first()) {
        to.clone_from(name);
    }
    shown
}

/// The time since `begun`, which becomes now.
pub(super) fn lap(begun: &mut Instant) -> Duration {
    let now = Instant::now();
    now.saturating_duration_since(std::mem::replace(begun, now))
}

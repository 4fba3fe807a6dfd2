//! A turn: all requests that were read, one after the other.

use std::future::poll_fn;
use std::iter;
use std::mem;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};

use super::answers::lap;
use super::connection::{Connection, End};
use super::reading::poll_given_up;
use crate::command::{Command, Flags, Id, Pipeline};
use crate::metrics::{Answered, Outcome};
use crate::reply::{CommandError, Reply};
use crate::resp::Parsed;
use crate::session::Answer;

impl Connection {
    /// Answers all whole requests of the input.
    pub(super) async fn turn(&mut self) -> Result<(), End> {
        let mut begun = Instant::now();
        let mut last = None;
        loop {
            let parsed = match self.ahead.take() {
                Some(parsed) => parsed,
                None => self.parser.next(&mut self.input, &mut self.args),
            };
            match parsed {
                Ok(Parsed::Request) => {}
                Ok(Parsed::Incomplete { missing_bytes }) => {
                    self.missing_bytes = missing_bytes;
                    break;
                }
                Err(violation) => {
                    self.settle(&mut begun).await?;
                    self.worker.recorder.violation();
                    self.reply(&Reply::Error(CommandError::of(format!("ERR {violation}"))));
                    self.flush().await?;
                    return Err(End::Violation);
                }
            }
            last = self.answer(&mut begun).await?.or(last);
            if self.session.is_over {
                self.flush().await?;
                return Err(End::Quit);
            }
            if self.flush_some().await? {
                // What the client takes to read is not the next command's time.
                begun = Instant::now();
            }
        }
        self.settle(&mut begun).await?;
        self.session.show(last);
        self.mark_active(begun);
        self.flush().await
    }

    /// Answers the request in `args`, which began at `begun`, and perhaps some behind it. Afterwards that is the end of them.
    async fn answer(&mut self, begun: &mut Instant) -> Result<Option<&'static Command>, End> {
        let command = match self.session.command(&self.args) {
            Ok(command) => command,
            Err((command, reply)) => {
                self.settle(begun).await?;
                self.reply(&reply);
                match command {
                    Some(command) => self.answered.push(Answered {
                        command,
                        took: Duration::ZERO,
                        outcome: Outcome::Refused,
                    }),
                    None => self.worker.recorder.unknown(),
                }
                self.args.clear();
                return Ok(command);
            }
        };
        if !self.session.is_in_transaction() && Pipeline::takes(command, &self.args) {
            self.gather(command);
            if self.pipeline.is_full() {
                self.settle(begun).await?;
            }
            return Ok(Some(command));
        }
        self.settle(begun).await?;
        if command.id == Id::Get && !self.session.is_in_transaction() {
            let args = mem::take(&mut self.args);
            let (reply, more) = self.get(command, &args).await;
            let took = lap(begun);
            self.note_slow(command, &args, took);
            for reply in iter::once(reply).chain(more) {
                self.reply(&reply);
                self.note(command, took, matches!(reply, Reply::Error(_)));
                drop(reply);
                if self.flush_some().await? {
                    *begun = Instant::now();
                }
            }
            // Unless the next request is there already.
            if self.ahead.is_none() {
                self.args = args;
                self.args.clear();
            }
            return Ok(Some(command));
        }
        let answer = match command.flags.has(Flags::BLOCKING) {
            true => self.wait_for(command).await?,
            false => self.session.run(command, &mut self.args).await,
        };
        match &answer {
            Answer::One(reply) => self.reply(reply),
            Answer::Many(replies) => {
                for reply in replies {
                    self.reply(reply);
                }
            }
        }
        let took = lap(begun);
        self.note_slow(command, &self.args, took);
        self.note(
            command,
            took,
            matches!(&answer, Answer::One(Reply::Error(_))),
        );
        self.args.clear();
        // A password changes them.
        if command.flags.has(Flags::NO_AUTH) {
            self.parser.set_limits(self.session.limits());
        }
        Ok(Some(command))
    }

    /// Runs a command that may wait for other clients. Earlier replies are sent first.
    async fn wait_for(&mut self, command: &'static Command) -> Result<Answer, End> {
        self.flush().await?;
        let Self {
            session,
            args,
            stream,
            input,
            entry,
            worker,
            ..
        } = self;
        let mut run = pin!(session.run(command, args));
        let answer = poll_fn(|context| {
            if let Poll::Ready(answer) = run.as_mut().poll(context) {
                return Poll::Ready(Ok(answer));
            }
            // Before, it may be about to take an element: that is answered.
            match entry.is_waiting.load(Ordering::Relaxed) {
                true => poll_given_up(entry, stream, input, worker.is_ending(), context).map(Err),
                false => Poll::Pending,
            }
        });
        answer.await
    }
}

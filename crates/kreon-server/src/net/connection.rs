//! What one connection holds.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::{Bytes, BytesMut};

use super::stream::Stream;
use super::worker::Worker;
use crate::budget::Share;
use crate::clients::ClientEntry;
use crate::command::Pipeline;
use crate::metrics::Answered;
use crate::resp::{Parsed, Parser, Violation};
use crate::session::Session;

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// The client left or asked for it.
    Quit,
    /// The server ends.
    ServerEnds,
    /// By `CLIENT KILL`, or idle for too long.
    Killed,
    /// It holds more memory than it may.
    Memory(&'static str),
    /// What it sent was no request.
    Violation,
    /// What was acknowledged may not be durable: no reply may be sent.
    NotDurable,
    /// A command of it panicked.
    Fault,
    Io(io::Error),
}

/// What a connection woke up for.
pub(super) enum Event {
    /// Bytes were read.
    Input,
    /// Messages of its subscriptions wait.
    Messages,
}

/// A connection on its thread.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) worker: Rc<Worker>,
    pub(super) stream: Stream,
    pub(super) entry: Arc<ClientEntry>,
    pub(super) session: Session,
    pub(super) parser: Parser,
    pub(super) input: BytesMut,
    /// What the memory of `input` was at most since it held nothing.
    pub(super) input_bytes: usize,
    /// What was parsed already: a request, with its arguments in `args`, or what is none.
    pub(super) ahead: Option<Result<Parsed, Violation>>,
    /// Bytes that the request in front of `input` lacks at least.
    pub(super) missing_bytes: usize,
    /// Writes that were parsed, and are run together.
    pub(super) pipeline: Pipeline,
    pub(super) output: Vec<u8>,
    pub(super) args: Vec<Bytes>,
    pub(super) answered: Vec<Answered>,
    pub(super) received_bytes: usize,
    pub(super) share: Share,
    /// The last event were messages.
    pub(super) has_delivered: bool,
}

impl Connection {
    pub(super) fn new(worker: &Rc<Worker>, stream: Stream, entry: &Arc<ClientEntry>) -> Self {
        let session = Session::new(&worker.shared, entry);
        Self {
            worker: Rc::clone(worker),
            stream,
            entry: Arc::clone(entry),
            parser: Parser::new(session.limits()),
            session,
            input: BytesMut::new(),
            input_bytes: 0,
            ahead: None,
            missing_bytes: 0,
            pipeline: Pipeline::default(),
            output: Vec::new(),
            args: Vec::new(),
            answered: Vec::new(),
            received_bytes: 0,
            share: Share::of(&worker.shared.clients.budget),
            has_delivered: false,
        }
    }

    /// Notes what the connection holds, for others and for the budget of all.
    pub(super) fn hold(&mut self) -> Result<(), End> {
        self.input_bytes = self.input_bytes.max(self.input.capacity());
        let (input, output) = (self.input_bytes, self.output.capacity());
        self.entry
            .input_bytes
            .store(self.input.len(), Ordering::Relaxed);
        self.entry
            .output_bytes
            .store(self.output.len(), Ordering::Relaxed);
        let kept = self.parser.held_bytes() + self.session.kept_bytes();
        self.session.client.release();
        match self.share.hold(input + output + kept) {
            true => Ok(()),
            false => Err(End::Memory("the buffers of all connections are full")),
        }
    }

    /// Now it did something.
    pub(super) fn mark_active(&self, now: Instant) {
        let age = now.saturating_duration_since(self.entry.since);
        self.entry
            .active_ms
            .store(age.as_millis() as u64, Ordering::Relaxed);
    }
}

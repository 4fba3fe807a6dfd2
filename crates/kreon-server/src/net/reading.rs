//! Waiting for what comes next.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::AsyncReadExt;

use super::buffers::{KEPT_BYTES_MAX, READ_BYTES};
use super::connection::{Connection, End, Event};
use super::stream::Stream;
use crate::clients::{Call, ClientEntry};

/// Room is made for at most so much of a long argument before it has come.
const AHEAD_BYTES_MAX: usize = 1 << 20;

impl Connection {
    /// Waits for bytes, messages or orders.
    pub(super) async fn next_event(&mut self) -> Result<Event, End> {
        self.make_room()?;
        poll_fn(|context| self.poll_event(context)).await
    }

    /// Room for the next bytes: never more than has come already, or a read.
    fn make_room(&mut self) -> Result<(), End> {
        if self.input.is_empty() {
            return Ok(());
        }
        let ahead = self.input.len().clamp(READ_BYTES, AHEAD_BYTES_MAX);
        let room = self.missing_bytes.clamp(READ_BYTES, ahead);
        self.input.reserve(room);
        self.hold()
    }

    /// Holds no buffer while nothing is there.
    fn give_back(&mut self) -> Result<(), End> {
        let input = mem::take(&mut self.input);
        let input_bytes = mem::take(&mut self.input_bytes);
        self.entry.input_bytes.store(0, Ordering::Relaxed);
        if input_bytes <= KEPT_BYTES_MAX {
            self.worker.buffers.put_input(input);
            return Ok(());
        }
        drop(input);
        self.hold()
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Event, End>> {
        let call = self.entry.mailbox.poll(context.waker());
        match call {
            Call::Killed => return Poll::Ready(Err(End::Killed)),
            Call::Overflow => {
                let what = "too many messages of its subscriptions wait";
                return Poll::Ready(Err(End::Memory(what)));
            }
            // Requests and messages take turns.
            Call::Messages if !self.has_delivered => return Poll::Ready(Ok(Event::Messages)),
            Call::Messages | Call::None => {}
        }
        if self.input.is_empty() {
            if self.input.capacity() == 0 {
                self.input = self.worker.buffers.input();
            }
            self.input.reserve(READ_BYTES);
        }
        match poll_input(&mut self.stream, &mut self.input, context) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(End::Quit)),
            Poll::Ready(Ok(bytes)) => {
                self.received_bytes += bytes;
                Poll::Ready(Ok(Event::Input))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(End::Io(error))),
            Poll::Pending => {
                if self.input.is_empty() {
                    self.worker
                        .buffers
                        .put_input(std::mem::take(&mut self.input));
                }
                if call == Call::Messages {
                    return Poll::Ready(Ok(Event::Messages));
                }
                // What has come before the end was asked for is answered; what comes later may never be.
                match self.worker.is_ending() {
                    true => Poll::Ready(Err(End::ServerEnds)),
                    false => Poll::Pending,
                }
            }
        }
    }
}

/// Reads what is there. 0 bytes: the client sends no more.
pub(super) fn poll_input(
    stream: &mut Stream,
    input: &mut BytesMut,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    pin!(stream.read_buf(input)).poll(context)
}

/// Completes when a client whose command waits for others is to wait no longer: it left, was killed, or the server ends. What
/// it sends meanwhile is kept, up to a read; more stays with the kernel.
pub(super) fn poll_given_up(
    entry: &ClientEntry,
    stream: &mut Stream,
    input: &mut BytesMut,
    is_ending: bool,
    context: &mut Context<'_>,
) -> Poll<End> {
    if let Call::Killed | Call::Overflow = entry.mailbox.poll(context.waker()) {
        return Poll::Ready(End::Killed);
    }
    if is_ending {
        return Poll::Ready(End::ServerEnds);
    }
    while input.len() < READ_BYTES {
        input.reserve(READ_BYTES);
        match poll_input(stream, input, context) {
            Poll::Ready(Ok(0)) => return Poll::Ready(End::Quit),
            Poll::Ready(Ok(_)) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(End::Io(error)),
            Poll::Pending => break,
        }
    }
    Poll::Pending
}

//! Sending replies.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::AsyncWrite;

use super::connection::{Connection, End};
use crate::clients::Call;

/// Replies are sent when so many bytes are there, whatever else the turn has: who does not read is not served.
const FLUSH_BYTES: usize = 64 << 10;

impl Connection {
    /// Sends the replies if they are many, and says whether it did.
    pub(super) async fn flush_some(&mut self) -> Result<bool, End> {
        if self.output.len() < FLUSH_BYTES {
            return Ok(false);
        }
        self.flush().await?;
        Ok(true)
    }

    /// Sends all replies, as soon as what they tell is as durable as it must be.
    pub(super) async fn flush(&mut self) -> Result<(), End> {
        if self.output.is_empty() {
            return Ok(());
        }
        let keyspace = &self.worker.shared.keyspace;
        let durable = keyspace.durable(&self.session.client, &self.worker.syncs);
        if let Err(error) = durable.await {
            tracing::error!(error = %error.0, "a connection ends without its replies");
            return Err(End::NotDurable);
        }
        let bytes_max = self.worker.shared.settings.limits.output_bytes_max;
        if self.output.len() > bytes_max {
            return Err(End::Memory("a reply is too large"));
        }
        if self.output.len() > FLUSH_BYTES {
            self.hold()?;
        }
        let recorder = &self.worker.recorder;
        recorder.turn(&self.answered, self.received_bytes, self.output.len());
        self.answered.clear();
        self.received_bytes = 0;
        // From here on it is the client's turn, which is idle if it takes nothing.
        self.mark_active(Instant::now());
        self.entry.is_served.store(false, Ordering::Relaxed);
        let mut sent = 0;
        poll_fn(|context| self.poll_send(&mut sent, context)).await?;
        self.entry.is_served.store(true, Ordering::Relaxed);
        self.output.clear();
        if self.output.capacity() > 2 * FLUSH_BYTES {
            self.output = Vec::new();
            self.hold()?;
        }
        Ok(())
    }

    fn poll_send(&mut self, sent: &mut usize, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        let failed = |error| Poll::Ready(Err(End::Io(error)));
        while let Some(rest) = self.output.get(*sent..).filter(|rest| !rest.is_empty()) {
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Ready(Ok(0)) => return failed(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(bytes)) => {
                    *sent += bytes;
                    if *sent < self.output.len() {
                        self.mark_active(Instant::now());
                    }
                }
                Poll::Ready(Err(error)) => return failed(error),
                Poll::Pending => {
                    // Who does not read can be ended all the same.
                    return match self.entry.mailbox.poll(context.waker()) {
                        Call::Killed | Call::Overflow => Poll::Ready(Err(End::Killed)),
                        Call::None | Call::Messages => Poll::Pending,
                    };
                }
            }
        }
        // TLS has buffers of its own.
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Ready(Err(error)) => failed(error),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    }
}

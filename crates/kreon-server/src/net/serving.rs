//! A thread that serves connections, each from its first byte to its last.

use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;

use super::arrival::Arrival;
use super::buffers::ARGS_KEPT_MAX;
use super::connection::{Connection, End, Event};
use super::worker::Worker;
use crate::clients::{ClientEntry, ClientKind};
use crate::resp::encode;
use crate::session::push_of;
use crate::shared::Shared;

/// Messages of so many bytes are sent together.
const DELIVERED_BYTES: usize = 64 << 10;

async fn serve(worker: Rc<Worker>, arrival: Arrival) {
    let Arrival {
        socket,
        admission,
        entry,
    } = arrival;
    let _seat = worker.connections.add(admission.id, &entry);
    match socket.into_stream(worker.tls.as_ref()).await {
        Ok(stream) => {
            let end = Connection::new(&worker, stream, &entry).serve().await;
            told(&end, &entry);
        }
        Err(error) => tracing::debug!(%error, from = entry.address, "no connection"),
    }
}

impl Connection {
    /// Serves it until it ends.
    async fn serve(mut self) -> End {
        loop {
            let event = match self.next_event().await {
                Ok(event) => event,
                Err(end) => return end,
            };
            self.output = self.worker.buffers.output();
            self.pipeline = self.worker.buffers.pipeline();
            self.has_delivered = matches!(event, Event::Messages);
            self.entry.is_served.store(true, Ordering::Relaxed);
            let done = match event {
                Event::Input => self.turn().await,
                Event::Messages => self.deliver().await,
            };
            self.entry.is_served.store(false, Ordering::Relaxed);
            let buffers = &self.worker.buffers;
            buffers.put_output(mem::take(&mut self.output));
            buffers.put_pipeline(mem::take(&mut self.pipeline));
            self.args.shrink_to(ARGS_KEPT_MAX);
            // What a transaction took, and what replies have given back, counts from now on.
            if let Err(end) = done.and_then(|()| self.hold()) {
                return end;
            }
        }
    }

    /// Sends the oldest messages that wait. The others count as waiting until the client has taken these.
    async fn deliver(&mut self) -> Result<(), End> {
        for message in self.entry.mailbox.take(DELIVERED_BYTES) {
            encode(&push_of(message), self.session.version, &mut self.output);
            self.flush_some().await?;
        }
        self.flush().await
    }
}

fn told(end: &End, entry: &ClientEntry) {
    let (id, from) = (entry.id, &entry.address);
    match end {
        End::Quit | End::ServerEnds => tracing::debug!(id, from, "a connection ended"),
        End::Memory(why) => tracing::warn!(id, from, why, "a connection was ended"),
        End::Io(error) => tracing::debug!(id, from, %error, "a connection broke"),
        other => tracing::debug!(id, from, ?other, "a connection was ended"),
    }
}

/// Serves what arrives until the server ends and the last connection has ended, or its time is over.
pub(crate) async fn run_worker(worker: Rc<Worker>, mut arrivals: UnboundedReceiver<Arrival>) {
    loop {
        tokio::select! {
            arrival = arrivals.recv() => match arrival {
                Some(arrival) => drop(tokio::task::spawn_local(serve(Rc::clone(&worker), arrival))),
                None => break,
            },
            () = worker.shared.ending.asked() => break,
        }
    }
    worker.end_connections();
    let end_max = worker.shared.settings.end_max;
    let all_ended = tokio::time::timeout(end_max, worker.connections.all_ended());
    if all_ended.await.is_err() {
        let left = worker.connections.count();
        tracing::warn!(left, "connections were cut off");
    }
}

/// Ends connections that are idle for longer than they may, once a second, until the server ends.
pub(crate) async fn close_idle(shared: Arc<Shared>) {
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    loop {
        clock.tick().await;
        let Some(idle_max) = shared.config.idle_max() else {
            continue;
        };
        let now = std::time::Instant::now();
        for entry in shared.clients.entries() {
            let is_busy = [&*entry.is_waiting, &entry.is_served]
                .iter()
                .any(|flag| flag.load(Ordering::Relaxed));
            let is_subscriber = entry.kind() == ClientKind::PubSub;
            if entry.idle_s(now) >= idle_max.as_secs() && !is_busy && !is_subscriber {
                entry.mailbox.kill();
            }
        }
    }
}

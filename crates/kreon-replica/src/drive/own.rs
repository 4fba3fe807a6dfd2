//! Control messages of a server to itself: the master is a member of groups, too, and no process connects to itself.

use std::sync::Weak;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::Builder;

use kreon_sync::Mutex;
use kreon_wire::Member;

use super::links::Receiver;

/// Messages that wait; more are lost, as on a connection.
const WAITING_MAX: usize = 64;

/// The way of a server to itself. A thread hands the messages on, as who sends them holds locks.
#[derive(Default)]
pub(super) struct Own(Mutex<Option<SyncSender<Vec<u8>>>>);

impl Own {
    /// Messages go to `receiver` from now on.
    pub fn hand_to(&self, me: Member, receiver: Weak<dyn Receiver>) {
        let (sender, messages) = sync_channel::<Vec<u8>>(WAITING_MAX);
        let thread = Builder::new().name("kreon-own".into()).spawn(move || {
            while let Ok(packet) = messages.recv() {
                let Some(receiver) = receiver.upgrade() else {
                    return;
                };
                if let Err(violation) = receiver.control(me, &packet) {
                    tracing::error!(?violation, "a server sent itself what it must not");
                }
            }
        });
        match thread {
            Ok(_) => *self.0.lock() = Some(sender),
            Err(error) => tracing::error!(%error, "a server does not hear itself"),
        }
    }

    /// Sends a message. Never waits.
    pub fn send(&self, packet: Vec<u8>) {
        if let Some(sender) = &*self.0.lock() {
            let _ = sender.try_send(packet);
        }
    }

    /// Nothing is handed on any more.
    pub fn close(&self) {
        self.0.lock().take();
    }
}

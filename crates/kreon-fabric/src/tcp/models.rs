//! Senders that leave packets to each other and to the progress thread, under many schedules. `cargo xtask interleavings
//! shuttle`.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kreon_base::{Error, ErrorKind};
use kreon_sync::{AtomicBool, Condvar, Mutex, Ordering, Wakeup, explore};
use rustix::io::Errno;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

use super::sending::{Phase, Sending, Todo};
use super::transfer::Moved;

const PACKETS: u8 = 3;
const PACKET_BYTES: usize = 5;
const WINDOW_BYTES: usize = 12;

/// A connection whose kernel takes as many bytes as it likes.
struct Model {
    sending: Sending,
    taken: Mutex<Vec<u8>>,
    more_taken: Condvar,
    /// Calls the progress thread.
    watched: Wakeup,
    /// How often senders were told that there is room.
    rooms: Mutex<u64>,
    more_room: Condvar,
    is_over: AtomicBool,
    fails: bool,
}

impl Model {
    fn new(soon: Duration, fails: bool) -> Arc<Self> {
        Arc::new(Self {
            sending: Sending::new(WINDOW_BYTES, soon),
            taken: Mutex::default(),
            more_taken: Condvar::new(),
            watched: Wakeup::default(),
            rooms: Mutex::default(),
            more_room: Condvar::new(),
            is_over: AtomicBool::new(false),
            fails,
        })
    }

    fn write(&self, parts: &[IoSlice<'_>]) -> Moved {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        let mut taken = self.taken.lock();
        if self.fails && taken.len() > 2 * PACKET_BYTES {
            return Moved::Failed(Errno::CONNRESET);
        }
        let count = thread_rng().gen_range(0..=bytes.len());
        taken.extend_from_slice(&bytes[..count]);
        self.more_taken.notify_all();
        Moved::Bytes(count)
    }

    fn follow(&self, todo: Todo) {
        if todo.watch {
            self.watched.call();
        }
        if todo.ring {
            *self.rooms.lock() += 1;
            self.more_room.notify_all();
        }
    }

    /// Sends a packet. False if the connection failed.
    fn send(&self, packet: &[u8; PACKET_BYTES]) -> bool {
        let parts = [IoSlice::new(&packet[..2]), IoSlice::new(&packet[2..])];
        loop {
            let rooms = *self.rooms.lock();
            let sent = self
                .sending
                .send(&parts, PACKET_BYTES, |parts| self.write(parts));
            match sent {
                Ok(todo) => {
                    self.follow(todo);
                    return true;
                }
                Err(e) if e.kind() == ErrorKind::Busy => {
                    let mut now = self.rooms.lock();
                    while *now == rooms {
                        self.more_room.wait(&mut now);
                    }
                }
                Err(_) => return false,
            }
        }
    }

    /// Sends all packets of a sender. False if the connection failed.
    fn send_all(&self, sender: u8) -> bool {
        (0..PACKETS).all(|number| self.send(&[sender * 16 + number; PACKET_BYTES]))
    }

    fn flush(&self) {
        let todo = self.sending.flush(|parts| self.write(parts));
        self.follow(todo);
    }

    /// The same with two packets that leave together, and then the rest.
    fn send_together(&self, sender: u8) -> bool {
        let all_sent = (0..PACKETS).all(|number| {
            let packet = [sender * 16 + number; PACKET_BYTES];
            let held = self.sending.hold(&[IoSlice::new(&packet)], PACKET_BYTES);
            let is_sent = match held {
                Ok(true) => true,
                Ok(false) => {
                    self.flush();
                    self.send(&packet)
                }
                Err(_) => false,
            };
            if number % 2 == 1 {
                self.flush();
            }
            is_sent
        });
        self.flush();
        all_sent
    }

    fn progress(&self) {
        loop {
            self.watched.wait();
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let todo = self.sending.progress(|parts| self.write(parts));
            self.follow(todo);
        }
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.watched.call();
    }

    fn wait_for(&self, bytes: usize) {
        let mut taken = self.taken.lock();
        while taken.len() < bytes {
            self.more_taken.wait(&mut taken);
        }
    }

    /// Whole packets, but the last, and each sender's in order.
    fn check(&self) {
        let taken = self.taken.lock().clone();
        let mut next = [0; 2];
        for packet in taken.chunks(PACKET_BYTES) {
            assert!(packet.iter().all(|byte| *byte == packet[0]), "{taken:?}");
            let (sender, number) = (packet[0] / 16, packet[0] % 16);
            assert_eq!(number, next[sender as usize], "{taken:?}");
            next[sender as usize] += 1;
        }
    }
}

fn start(model: &Arc<Model>) -> (thread::JoinHandle<()>, Vec<thread::JoinHandle<bool>>) {
    let progress = Arc::clone(model);
    let progress = thread::spawn(move || progress.progress());
    let sender = |sender| {
        let model = Arc::clone(model);
        thread::spawn(move || model.send_all(sender))
    };
    (progress, [0, 1].map(sender).into())
}

#[test]
fn model_nothing_is_left_behind_and_everyone_hears_of_room() {
    for soon in [Duration::ZERO, Duration::MAX] {
        explore("two senders, the progress thread", 4000, move || {
            let model = Model::new(soon, false);
            let (progress, senders) = start(&model);
            let sent = senders.into_iter().map(|sender| sender.join().unwrap());
            assert!(sent.collect::<Vec<_>>().iter().all(|sent| *sent));
            model.wait_for(2 * PACKETS as usize * PACKET_BYTES);
            model.check();
            model.end();
            progress.join().unwrap();
        });
    }
}

#[test]
fn model_nothing_that_was_held_is_left_behind() {
    for soon in [Duration::ZERO, Duration::MAX] {
        explore("a sender that holds, another one", 4000, move || {
            let model = Model::new(soon, false);
            let progress = Arc::clone(&model);
            let progress = thread::spawn(move || progress.progress());
            let other = Arc::clone(&model);
            let other = thread::spawn(move || other.send_all(0));
            assert!(model.send_together(1));
            assert!(other.join().unwrap());
            model.wait_for(2 * PACKETS as usize * PACKET_BYTES);
            model.check();
            model.end();
            progress.join().unwrap();
        });
    }
}

#[test]
fn model_a_close_sends_all_that_was_taken() {
    explore("two senders, a close", 4000, || {
        let model = Model::new(Duration::ZERO, false);
        let (progress, senders) = start(&model);
        let why = Error::new(ErrorKind::Closed, "enough");
        model.sending.close(why, Instant::now());
        // Who waits for room hears of the end from who polls.
        *model.rooms.lock() += 1;
        model.more_room.notify_all();
        model.watched.call();
        senders
            .into_iter()
            .for_each(|sender| _ = sender.join().unwrap());
        loop {
            match model.sending.phase() {
                Phase::Closing {
                    is_drained: true, ..
                } => break,
                Phase::Closing { .. } => model.watched.call(),
                other => panic!("{other:?}"),
            }
            thread::yield_now();
        }
        model.check();
        assert_eq!(model.taken.lock().len() % PACKET_BYTES, 0);
        model.end();
        progress.join().unwrap();
    });
}

#[test]
fn model_a_failed_write_ends_everyone() {
    explore("two senders, a write that fails", 4000, || {
        let model = Model::new(Duration::ZERO, true);
        let (progress, senders) = start(&model);
        while !matches!(model.sending.phase(), Phase::Lost { .. }) {
            model.watched.call();
            thread::yield_now();
        }
        *model.rooms.lock() += 1;
        model.more_room.notify_all();
        senders
            .into_iter()
            .for_each(|sender| _ = sender.join().unwrap());
        assert!(model.sending.failure().is_some());
        model.check();
        model.end();
        progress.join().unwrap();
    });
}

//! The fake coordinator behind a socket, and a session with it in another process.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kreon_base::{Error, ErrorKind, Result};
use kreon_coord::fake::FakeSession;
use kreon_coord::{CallId, Command, Coordinator, Event};

use super::coded::{Take, command_bytes, event_bytes, receive, send};

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Microseconds since 1970.
pub fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// The coordinator.
pub struct Served {
    /// Makes sessions of this process.
    pub root: FakeSession,
    /// Where others find it.
    pub address: SocketAddr,
    /// When the last session ended, in microseconds since 1970.
    pub expired_us: Arc<AtomicU64>,
}

/// Starts it. A session of which nothing was heard for so long ends.
pub fn serve(session_ms: u32) -> std::io::Result<Served> {
    let root = FakeSession::new();
    let maker = root.another();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let expired_us = Arc::new(AtomicU64::new(0));
    let expired = Arc::clone(&expired_us);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let session = Arc::new(maker.another());
            let expired = Arc::clone(&expired);
            std::thread::spawn(move || hold(&session, &socket, (session_ms, &expired)));
        }
    });
    Ok(Served {
        root,
        address,
        expired_us,
    })
}

/// One session, until nothing was heard of it for too long.
fn hold(
    session: &Arc<FakeSession>,
    socket: &TcpStream,
    (session_ms, expired_us): (u32, &AtomicU64),
) {
    let heard = Arc::new(Mutex::new(Instant::now()));
    let (reads, is_open) = (socket.try_clone(), Arc::new(AtomicBool::new(true)));
    let (mine, flag, asked) = (
        Arc::clone(&heard),
        Arc::clone(&is_open),
        Arc::clone(session),
    );
    let Ok(mut reads) = reads else { return };
    std::thread::spawn(move || {
        while let Ok(bytes) = receive(&mut reads) {
            *locked(&mine) = Instant::now();
            if bytes.is_empty() {
                continue;
            }
            let Ok((call, command)) = Take(&bytes).command() else {
                break;
            };
            if asked.send(call, command).is_err() {
                break;
            }
        }
        flag.store(false, Ordering::Release);
    });
    let (mut events, mut writes) = (Vec::new(), socket);
    let session_time = Duration::from_millis(session_ms.into());
    while locked(&heard).elapsed() < session_time {
        let (before, pause) = (Instant::now(), Duration::from_millis(20));
        if session.poll(&mut events, pause).is_err() {
            break;
        }
        if before.elapsed() > session_time / 2 {
            // This process was stopped, and what it was sent meanwhile lies unread.
            *locked(&heard) = Instant::now();
        }
        for event in events.drain(..) {
            // A process that is gone reads nothing; its session lives on until its time is over.
            if is_open.load(Ordering::Acquire) {
                let _ = send(&mut writes, &event_bytes(&event));
            }
        }
    }
    session.expire();
    expired_us.store(now_us(), Ordering::Release);
    let _ = send(&mut writes, &event_bytes(&Event::Expired));
    let _ = writes.flush();
}

#[derive(Default)]
struct Told {
    events: Vec<Event>,
    is_over: bool,
}

/// A session over a socket.
pub struct Remote {
    socket: Arc<Mutex<TcpStream>>,
    told: Arc<(Mutex<Told>, Condvar)>,
    session_ms: u32,
}

impl Remote {
    /// Begins one.
    pub fn begin(at: SocketAddr, session_ms: u32) -> Result<Self> {
        let failed = |error| Error::io("reach the coordinator", error);
        let socket = TcpStream::connect(at).map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        let mut reads = socket.try_clone().map_err(failed)?;
        let socket = Arc::new(Mutex::new(socket));
        let pings = Arc::clone(&socket);
        let told: Arc<(Mutex<Told>, Condvar)> = Arc::default();
        let mine = Arc::clone(&told);
        std::thread::spawn(move || {
            while let Ok(bytes) = receive(&mut reads) {
                let Ok(event) = Take(&bytes).event() else {
                    break;
                };
                locked(&mine.0).events.push(event);
                mine.1.notify_all();
            }
            locked(&mine.0).is_over = true;
            mine.1.notify_all();
        });
        let pause = Duration::from_millis(u64::from(session_ms) / 4);
        std::thread::spawn(move || {
            while send(&mut *locked(&pings), &[]).is_ok() {
                std::thread::sleep(pause);
            }
        });
        Ok(Self {
            socket,
            told,
            session_ms,
        })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = locked(&self.socket).shutdown(std::net::Shutdown::Both);
    }
}

impl Coordinator for Remote {
    fn send(&self, call: CallId, command: Command) -> Result<()> {
        let sent = send(&mut *locked(&self.socket), &command_bytes(call, &command));
        sent.map_err(|_| Error::new(ErrorKind::Closed, "the session has ended"))
    }

    fn poll(&self, out: &mut Vec<Event>, patience: Duration) -> Result<()> {
        let mut told = locked(&self.told.0);
        if told.events.is_empty() && !told.is_over {
            let waited = self.told.1.wait_timeout(told, patience);
            told = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        out.append(&mut told.events);
        match told.is_over && out.is_empty() {
            true => Err(Error::new(ErrorKind::Io, "the coordinator is gone")),
            false => Ok(()),
        }
    }

    fn session_ms(&self) -> u32 {
        self.session_ms
    }
}

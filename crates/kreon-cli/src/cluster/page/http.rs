//! Just enough of HTTP for pages that nobody sends anything to: `GET` of three paths, one connection at a time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use kreon::{Error, Result};
use kreon_node::NodeStatus;

use super::{as_json, metrics, picture};

/// A request has at most so many bytes, all of its headers included.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Who takes longer to ask, or to take the answer, is given up: others wait.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an end waits to be seen.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves pages until it is dropped.
pub struct Pages {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pages {
    /// Listens at `address` and shows what `status` says at the moment of each request.
    ///
    /// # Errors
    /// `Io`: it cannot be listened on.
    pub fn serve(address: &str, status: impl Fn() -> NodeStatus + Send + 'static) -> Result<Self> {
        let io = |error| Error::io(format!("listen at {address} for the status page"), error);
        let listener = TcpListener::bind(address).map_err(io)?;
        listener.set_nonblocking(true).map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("kreon-pages".into());
        let thread = thread.spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    // Who asked goes away or stays too long: the next one is served.
                    Ok((stream, _)) => drop(answer(stream, &status)),
                    Err(_) => sleep(PAUSE),
                }
            }
        });
        Ok(Self {
            address,
            stop,
            thread: Some(thread.map_err(io)?),
        })
    }

    /// Where they are served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, status: &impl Fn() -> NodeStatus) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (code, kind, body) = match path(&mut stream)?.as_deref() {
        Some("/") => (
            "200 OK",
            "text/html; charset=utf-8",
            picture::page(&status()),
        ),
        Some("/metrics") => (
            "200 OK",
            "text/plain; version=0.0.4",
            metrics::text(&status()),
        ),
        Some("/status.json") => (
            "200 OK",
            "application/json",
            as_json::node(&status()).to_string(),
        ),
        Some(_) => ("404 Not Found", "text/plain", "not found\n".to_owned()),
        None => (
            "400 Bad Request",
            "text/plain",
            "only GET is understood\n".to_owned(),
        ),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// The path that is asked for, without what follows a question mark; none if it is no request for one.
fn path(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let begun = Instant::now();
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    // All of it: a connection with unread bytes is reset before the answer is read.
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if left.is_zero() || request.len() > REQUEST_BYTES_MAX {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Ok(None);
        }
        request.extend_from_slice(part.get(..count).unwrap_or_default());
    }
    let line = request
        .split(|byte| *byte == b'\r')
        .next()
        .unwrap_or_default();
    let mut words = str::from_utf8(line).unwrap_or_default().split(' ');
    let (method, target) = (words.next(), words.next());
    let path = target.and_then(|target| target.split('?').next());
    Ok(path.filter(|_| method == Some("GET")).map(str::to_owned))
}

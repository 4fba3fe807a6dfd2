//! Just enough of HTTP for pages that nobody sends anything to: `GET` of three paths.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kreon::{Error, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::figures;
use crate::shared::Shared;

/// A request has at most so many bytes, all of its headers included.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Who takes longer to ask and to take the answer is given up.
const PATIENCE: Duration = Duration::from_secs(5);
/// Requests at a time; more wait.
const AT_A_TIME: usize = 16;
/// Pause after a failure to accept.
const PAUSE: Duration = Duration::from_millis(100);

/// The page for people: it asks for the figures itself.
const PAGE: &str = include_str!("page.html");

/// A socket for pages, of no thread yet.
#[derive(Debug)]
pub(crate) struct Pages(std::net::TcpListener);

impl Pages {
    /// Listens at `address`.
    ///
    /// # Errors
    /// `Io` names it.
    pub(crate) fn bind(address: &str) -> Result<Self> {
        let bind = || {
            let listener = std::net::TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(Self(listener))
        };
        bind().map_err(|error| Error::io(format!("listen at {address} for metrics"), error))
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.0.local_addr().ok()
    }

    /// Answers until the server ends.
    pub(crate) async fn serve(self, shared: Arc<Shared>) {
        let listener = match TcpListener::from_std(self.0) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "there are no metrics"),
        };
        let places = Arc::new(Semaphore::new(AT_A_TIME));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = shared.ending.asked() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    let shared = Arc::clone(&shared);
                    drop(spawn_local(async move {
                        // Who asked went away or stayed too long.
                        let _ = timeout(PATIENCE, answer(stream, &shared)).await;
                        drop(place);
                    }));
                }
                Err(error) => {
                    tracing::debug!(%error, "nobody could ask for metrics");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

async fn answer(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let path = path(&mut stream).await?;
    let (code, kind, body) = match path.as_deref() {
        Some("/") => ("200 OK", "text/html; charset=utf-8", PAGE.to_owned()),
        Some("/metrics") => (
            "200 OK",
            "text/plain; version=0.0.4",
            figures::metrics(shared),
        ),
        Some("/status.json") => (
            "200 OK",
            "application/json",
            figures::json(shared).to_string(),
        ),
        Some(_) => ("404 Not Found", "text/plain", "not found\n".to_owned()),
        None => (
            "400 Bad Request",
            "text/plain",
            "only GET is understood\n".to_owned(),
        ),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// The path that is asked for, without what follows a question mark; none if it is no request for one.
async fn path(stream: &mut TcpStream) -> io::Result<Option<String>> {
    let mut request = Vec::new();
    // All of it: a connection with unread bytes is reset before the answer is read.
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > REQUEST_BYTES_MAX || stream.read_buf(&mut request).await? == 0 {
            return Ok(None);
        }
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

//! A connection that was let in, on its way to a thread.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;

use super::stream::Stream;
use crate::clients::{Admission, ClientEntry};

/// A client has so long for the handshake of TLS.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// A client that says nothing for so long is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(300);

/// A connection that was let in.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(super) socket: Socket,
    pub(super) admission: Admission,
    pub(super) entry: Arc<ClientEntry>,
}

/// Its socket, of no thread yet.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Socket {
    /// Says why and closes it. The socket's own buffer takes the text, or the client does not learn it.
    pub(super) fn refuse(self, why: &str) {
        let _ = match self {
            Self::Tcp(mut stream) => stream.write(why.as_bytes()),
            Self::Unix(mut stream) => stream.write(why.as_bytes()),
        };
    }

    /// Its bytes, on the thread that serves it, if TLS agrees.
    pub(super) async fn into_stream(self, tls: Option<&TlsAcceptor>) -> io::Result<Stream> {
        match self {
            Self::Unix(stream) => Ok(Stream::Unix(UnixStream::from_std(stream)?)),
            Self::Tcp(stream) => {
                let stream = TcpStream::from_std(stream)?;
                set_up(&stream)?;
                let Some(tls) = tls else {
                    return Ok(Stream::Tcp(stream));
                };
                let handshake = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream));
                let stream = handshake.await.map_err(|_| io::ErrorKind::TimedOut)??;
                Ok(Stream::Tls(Box::new(stream)))
            }
        }
    }
}

/// Replies are whole when they are sent, and a client that vanished is found out.
fn set_up(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE / 3)?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(())
}

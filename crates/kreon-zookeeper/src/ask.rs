//! What a server says of itself.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How a server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Alone.
    Standalone,
    /// It orders the writes of its ensemble, as far as it knows.
    Leader,
    /// It follows one.
    Follower,
}

/// How the server at `address` serves; none: it does not, or does not answer within half a second.
pub fn mode(address: SocketAddr) -> Option<Mode> {
    let patience = Duration::from_millis(500);
    let mut stream = TcpStream::connect_timeout(&address, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.write_all(b"srvr").ok()?;
    let mut answer = Vec::new();
    // It closes the connection behind its answer; what came until then counts.
    let _ = stream.take(4096).read_to_end(&mut answer);
    mode_in(&String::from_utf8_lossy(&answer))
}

fn mode_in(answer: &str) -> Option<Mode> {
    let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "));
    match mode? {
        "standalone" => Some(Mode::Standalone),
        "leader" => Some(Mode::Leader),
        "follower" => Some(Mode::Follower),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_serve_has_no_mode() {
        let refusal = "This ZooKeeper instance is not currently serving requests\n";
        assert_eq!(mode_in(refusal), None);
        assert_eq!(
            mode_in("Zxid: 0x0\nMode: leader\nNode count: 5\n"),
            Some(Mode::Leader)
        );
        assert_eq!(mode_in(""), None);
    }
}

//! A server on a port of its own, and a client that sees every byte.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use kreon_server::{Server, Settings};
use tempfile::TempDir;

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server over a store in a folder of its own.
pub struct Running {
    pub server: Server,
    pub folder: TempDir,
}

impl Running {
    /// With settings that `change` makes of those of tests: one thread, a port that is free.
    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        change(&mut settings);
        let server = start(&folder.path().join("store"), settings);
        Self { server, folder }
    }

    pub fn new() -> Self {
        Self::with(|_| ())
    }

    /// Ends it in order, and starts it again on its store with other settings.
    pub fn restart(self, change: impl FnOnce(&mut Settings)) -> Self {
        let path = self.store_path();
        let Self { server, folder } = self;
        server.end().unwrap();
        let mut settings = settings();
        change(&mut settings);
        let server = start(&path, settings);
        Self { server, folder }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    pub fn connect(&self) -> Wire {
        Wire::connect(self.address())
    }

    pub fn store_path(&self) -> PathBuf {
        self.folder.path().join("store")
    }
}

/// Small, and on a port that is free.
pub fn settings() -> Settings {
    Settings {
        listen: vec!["127.0.0.1:0".to_owned()],
        threads: 2,
        databases: 4,
        end_max: Duration::from_secs(2),
        ..Settings::default()
    }
}

pub fn start(path: &std::path::Path, settings: Settings) -> Server {
    let store = kreon::Store::options().memory_bytes(16 << 20);
    Server::start(store, path, settings).unwrap()
}

/// A connection.
pub struct Wire {
    pub stream: TcpStream,
    received: Vec<u8>,
}

impl Wire {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            received: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// A request of words.
    pub fn request(&mut self, line: &str) {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.send(&request(&words));
    }

    /// A request of words, and its reply as it came, with `|` for each line end.
    pub fn ask(&mut self, line: &str) -> String {
        self.request(line);
        self.reply()
    }

    /// The next reply, with `|` for each line end but the last.
    pub fn reply(&mut self) -> String {
        let bytes = self.try_reply().unwrap();
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "|");
        text.trim_end_matches('|').to_owned()
    }

    /// Reads again if it was interrupted: io_uring does that to a thread that has opened a store.
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(part) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    /// The bytes of the next reply.
    pub fn try_reply(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(len) = reply_len(&self.received) {
                return Ok(self.received.drain(..len).collect());
            }
            let mut part = [0; 16 << 10];
            let count = self.read(&mut part)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.received.extend_from_slice(&part[..count]);
        }
    }

    /// Whether the server closed it; what comes before is read.
    pub fn is_closed(&mut self) -> bool {
        let mut part = [0; 16 << 10];
        loop {
            match self.read(&mut part) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == io::ErrorKind::ConnectionReset,
            }
        }
    }
}

/// The bytes of a request.
pub fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Length of the reply in front of `bytes`, if all of it is there.
fn reply_len(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|end| end == b"\r\n")? + 2;
    let number = || {
        str::from_utf8(&bytes[1..line - 2])
            .unwrap()
            .parse::<i64>()
            .unwrap()
    };
    match bytes[0] {
        b'$' | b'=' if number() < 0 => Some(line),
        b'$' | b'=' => {
            let len = line + number() as usize + 2;
            (bytes.len() >= len).then_some(len)
        }
        b'*' | b'~' | b'>' | b'%' => {
            let items = if bytes[0] == b'%' {
                2 * number()
            } else {
                number()
            };
            let mut len = line;
            for _ in 0..items.max(0) {
                len += reply_len(&bytes[len..])?;
            }
            Some(len)
        }
        _ => Some(line),
    }
}

/// Waits until `holds`, or fails.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

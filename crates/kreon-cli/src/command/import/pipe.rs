//! A pipe that is read in a thread of its own, so that a signal ends the wait for its next bytes.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use crate::interrupt::Interrupt;

const CHUNK_BYTES: usize = 256 << 10;
/// Chunks that are read ahead.
const CHUNKS_MAX: usize = 2;
/// How long a signal waits to be seen.
const PATIENCE: Duration = Duration::from_millis(20);

/// What the thread reads, in order.
pub struct Pipe {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    interrupt: Interrupt,
}

impl Pipe {
    /// The thread ends with the source, or with the first read after `Pipe` was dropped.
    pub fn new(mut source: impl Read + Send + 'static, interrupt: &Interrupt) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS_MAX);
        thread::spawn(move || {
            let mut buffer = vec![0; CHUNK_BYTES];
            loop {
                let chunk = match source.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => Ok(buffer[..count].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_last = chunk.is_err();
                if sender.send(chunk).is_err() || is_last {
                    return;
                }
            }
        });
        Self {
            chunks,
            chunk: io::Cursor::default(),
            interrupt: interrupt.clone(),
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.chunk.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            match self.chunks.recv_timeout(PATIENCE) {
                Ok(chunk) => self.chunk = io::Cursor::new(chunk?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if self.interrupt.check().is_err() => {
                    return Err(io::Error::other("interrupted"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

//! A running `kreon serve`, which ends with the test.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{Fixture, bare_command};

pub struct Served {
    pub child: Child,
    out: BufReader<ChildStdout>,
    pub port: u16,
}

impl Served {
    /// Starts it on any free port, with the store of `fixture`.
    pub fn start(fixture: &Fixture, options: &[&str]) -> Self {
        let mut command = bare_command();
        let store = fixture.store();
        command
            .arg("serve")
            .arg(&store)
            .args(["--memory", "16MiB", "--listen", "127.0.0.1:0"]);
        let mut child = command
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap_or_default().parse();
        let port = port.unwrap_or_else(|_| panic!("{line}"));
        Self { child, out, port }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Ends it in order.
    pub fn end(mut self) -> String {
        self.signal(Signal::TERM);
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! What the servers log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tracing::Subscriber;
use tracing_subscriber::fmt::MakeWriter;

use crate::clock::Clock;

/// Lines of other crates tell of connections, not of groups.
const TARGETS: &str = "kreon_";

/// A line of a server's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When, in microseconds of the run.
    pub at_us: u64,
    /// Which server.
    pub server: u32,
    /// The group that it is about; none: the whole server.
    pub group: Option<u32>,
    /// The message and its fields, without the group.
    pub text: String,
}

impl Logged {
    /// A line that [`subscriber`] wrote; none if it is another one, or was cut off by the end of its process.
    fn parse(server: u32, line: &str) -> Option<Self> {
        let (time, rest) = line.trim_start().split_once(' ')?;
        let (seconds, micros) = time.split_once('.')?;
        let micros = micros.parse::<u64>().ok().filter(|_| micros.len() == 6)?;
        let at_us = seconds.parse::<u64>().ok()? * 1_000_000 + micros;
        let (_level, rest) = rest.trim_start().split_once(' ')?;
        let (_, text) = rest
            .split_once(": ")
            .filter(|(target, _)| target.starts_with(TARGETS))?;
        let field = text.split(' ').find_map(|word| word.strip_prefix("group="));
        let text = match field {
            Some(group) => text.replacen(&format!(" group={group}"), "", 1),
            None => text.to_owned(),
        };
        Some(Self {
            at_us,
            server,
            group: field.and_then(|group| group.parse().ok()),
            text,
        })
    }
}

/// The log of a server, read up to somewhere.
struct Log {
    server: u32,
    path: PathBuf,
    read_bytes: u64,
}

/// The logs of all servers.
pub struct Logs(Vec<Log>);

impl Logs {
    /// Of the servers 1 to `servers`, none of which was read yet.
    pub fn new(folder: &Path, servers: u32) -> Self {
        let log = |server| Log {
            server,
            path: path_of(folder, server),
            read_bytes: 0,
        };
        Self((1..=servers).map(log).collect())
    }

    /// What was logged since the last call, in the order of time. A log that cannot be read is taken for an empty one: it only
    /// explains.
    pub fn read(&mut self) -> Vec<Logged> {
        let mut all: Vec<Logged> = self.0.iter_mut().flat_map(Log::read).collect();
        all.sort_by_key(|logged| logged.at_us);
        all
    }
}

impl Log {
    fn read(&mut self) -> Vec<Logged> {
        let bytes = self.rest().unwrap_or_default();
        // The last line may be on its way.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        let bytes = bytes.get(..whole.map_or(0, |at| at + 1)).unwrap_or(&[]);
        self.read_bytes += bytes.len() as u64;
        let text = String::from_utf8_lossy(bytes);
        let lines = text.lines();
        lines
            .filter_map(|line| Logged::parse(self.server, line))
            .collect()
    }

    fn rest(&self) -> std::io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.read_bytes))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Writes the log of a server, as [`Logs`] understands it.
pub fn subscriber<W>(clock: Clock, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt().with_ansi(false).with_timer(clock);
    lines.with_writer(writer).finish()
}

/// Where a server logs.
pub fn path_of(folder: &Path, server: u32) -> PathBuf {
    folder.join(format!("server-{server}.log"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SERVES: &str = "   12.345678  INFO kreon_replica::drive::office: this server serves a group group=3 term=2 set=[1, 2]\n";
    const MASTER: &str =
        "   12.001000  INFO kreon_replica::drive::mastering: this server is the master office=4\n";

    #[test]
    fn a_line_tells_when_what_became_of_which_group() {
        let serves = Logged::parse(2, SERVES.trim_end()).unwrap();
        let expected = Logged {
            at_us: 12_345_678,
            server: 2,
            group: Some(3),
            text: "this server serves a group term=2 set=[1, 2]".into(),
        };
        assert_eq!(serves, expected);
        let master = Logged::parse(2, MASTER.trim_end()).unwrap();
        assert_eq!((master.group, master.at_us), (None, 12_001_000));
        for strange in [
            "",
            "server 2: no ZooKeeper: again",
            "   12.5  INFO kreon_node: x",
            "   12.345678  WARN zookeeper_client::session: x",
            "   12.345678  INFO kreon_repl",
        ] {
            assert_eq!(Logged::parse(2, strange), None, "{strange}");
        }
    }

    #[test]
    fn what_a_server_logs_is_understood() {
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(path_of(folder.path(), 1)).unwrap();
        let clock = Clock::begin();
        let subscriber = subscriber(clock, log);
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "kreon_replica::drive", group = 3, set = ?[1, 2], "it serves");
            tracing::warn!(target: "zookeeper_client", "not of a group");
        });
        let read = Logs::new(folder.path(), 1).read();
        let [logged] = read.as_slice() else {
            panic!("{read:?}");
        };
        assert_eq!((logged.server, logged.group), (1, Some(3)));
        assert_eq!(logged.text, "it serves set=[1, 2]");
        assert!(logged.at_us <= clock.now_us());
    }

    #[test]
    fn each_line_is_read_once_when_it_is_whole_and_servers_are_in_one_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut logs = Logs::new(folder.path(), 2);
        assert_eq!(logs.read(), []);
        let append = |server, text: &str| {
            let mut options = File::options();
            let log = options.create(true).append(true);
            let mut log = log.open(path_of(folder.path(), server)).unwrap();
            log.write_all(text.as_bytes()).unwrap();
        };
        let (begin, end) = SERVES.split_at(60);
        append(1, begin);
        append(2, MASTER);
        let read: Vec<u32> = logs.read().iter().map(|logged| logged.server).collect();
        assert_eq!(read, [2]);
        append(1, end);
        append(2, MASTER);
        let read: Vec<u32> = logs.read().iter().map(|logged| logged.server).collect();
        assert_eq!(read, [2, 1]);
        assert_eq!(logs.read(), []);
    }
}

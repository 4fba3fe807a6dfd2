//! Settings of a server.

use std::path::PathBuf;
use std::time::Duration;

/// When a write survives a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistence {
    /// Before its reply is sent. Connections share flushes.
    Sync,
    /// When the store writes its log out: a crash takes at most a suffix.
    #[default]
    Buffered,
    /// After so long at most; 1 ms and more.
    Interval(Duration),
}

/// The files of a certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those that vouch for it.
    pub certificates: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// What clients may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections; 1 and more.
    pub clients_max: usize,
    /// A connection that sends nothing for so long is closed. None: never. Subscribers and waiters stay.
    pub idle_max: Option<Duration>,
    /// Arguments of a request.
    pub args_max: usize,
    /// Bytes of an argument.
    pub bulk_bytes_max: usize,
    /// Bytes of a request, and of the requests that a transaction holds.
    pub request_bytes_max: usize,
    /// Bytes of one reply: one of several elements becomes an error beyond them. And bytes that wait for a client which does
    /// not read them: a reply of one value, and messages of its subscriptions. It is disconnected beyond them.
    pub output_bytes_max: usize,
    /// Bytes in the buffers of all connections together, and in replies that are being gathered: a connection that needs more
    /// is disconnected, a command that gathers more fails.
    pub buffers_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients_max: 10_000,
            idle_max: None,
            args_max: 1 << 20,
            bulk_bytes_max: 512 << 20,
            request_bytes_max: 1 << 30,
            output_bytes_max: 256 << 20,
            buffers_bytes_max: 1 << 30,
        }
    }
}

/// How a server runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Addresses (`127.0.0.1:6379`, `[::1]:6379`, `host:6379`) where it listens. With [`tls`](Self::tls) they take TLS only.
    pub listen: Vec<String>,
    /// Path of a Unix socket, without TLS.
    pub unix: Option<PathBuf>,
    /// Threads that serve connections; 1 and more.
    pub threads: usize,
    /// Databases that `SELECT` knows, 1 to 256.
    pub databases: usize,
    /// When writes survive a crash.
    pub persistence: Persistence,
    /// What `AUTH` asks for. None: nothing.
    pub password: Option<Vec<u8>>,
    /// Without a password connections from other machines are refused, wherever it listens.
    pub is_protected: bool,
    /// The certificate of TLS.
    pub tls: Option<TlsFiles>,
    /// Address of metrics (`/metrics`) and of the status page (`/`), for whoever can connect.
    pub metrics: Option<String>,
    /// Folder of the backups that `BGSAVE` makes. None: it and `SAVE` make the store durable in its own file only.
    pub backups: Option<PathBuf>,
    /// Whether `DEBUG` is allowed.
    pub has_debug: bool,
    /// What clients may take.
    pub limits: Limits,
    /// How long SIGTERM waits for connections to take their replies.
    pub end_max: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: vec!["127.0.0.1:6379".to_owned()],
            unix: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            databases: 16,
            persistence: Persistence::Buffered,
            password: None,
            is_protected: true,
            tls: None,
            metrics: None,
            backups: None,
            has_debug: false,
            limits: Limits::default(),
            end_max: Duration::from_secs(5),
        }
    }
}

impl Settings {
    /// Whether it can be run with these.
    ///
    /// # Errors
    /// `InvalidArgument` names the setting that is out of its range.
    pub fn check(&self) -> kreon::Result<()> {
        let limits = &self.limits;
        let least_interval = Duration::from_millis(1);
        let wrong = [
            (
                self.listen.is_empty() && self.unix.is_none(),
                "no address to listen at",
            ),
            (
                self.threads == 0 || self.threads > 1024,
                "threads are 1 to 1024",
            ),
            (
                self.databases == 0 || self.databases > 256,
                "databases are 1 to 256",
            ),
            (limits.clients_max == 0, "clients are 1 and more"),
            (
                limits.args_max < 16,
                "arguments of a request are 16 and more",
            ),
            (
                limits.bulk_bytes_max > kreon::VALUE_BYTES_MAX,
                "an argument has at most 1 GiB",
            ),
            (
                matches!(self.persistence, Persistence::Interval(time) if time < least_interval),
                "an interval is 1 ms and more",
            ),
            (
                self.password.as_ref().is_some_and(Vec::is_empty),
                "the password is empty",
            ),
        ];
        match wrong.iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, what)) => Err(kreon::Error::invalid(*what)),
            None => Ok(()),
        }
    }
}

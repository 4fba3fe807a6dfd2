//! Commands that took long: `SLOWLOG`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

/// Arguments of a command that are kept, and bytes of each.
const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;

/// A command that took long.
#[derive(Clone, Debug)]
pub(crate) struct SlowCommand {
    pub id: u64,
    /// Seconds since 1970.
    pub at_s: i64,
    pub took: Duration,
    /// Shortened: at most 32 of 128 bytes and a remark.
    pub args: Vec<Bytes>,
    pub address: String,
    pub name: String,
}

/// The last of them.
#[derive(Debug)]
pub(crate) struct SlowLog {
    /// Commands that take as many microseconds are kept; negative: none.
    pub slower_us: AtomicI64,
    pub len_max: AtomicUsize,
    next_id: AtomicU64,
    commands: Mutex<VecDeque<SlowCommand>>,
}

impl Default for SlowLog {
    fn default() -> Self {
        Self {
            slower_us: AtomicI64::new(10_000),
            len_max: AtomicUsize::new(128),
            next_id: AtomicU64::new(0),
            commands: Mutex::default(),
        }
    }
}

impl SlowLog {
    /// Whether a command that took so long is kept.
    pub(crate) fn takes(&self, took: Duration) -> bool {
        let slower_us = self.slower_us.load(Ordering::Relaxed);
        slower_us >= 0 && took.as_micros() as i64 >= slower_us
    }

    /// Keeps a command, with its number and shortened.
    pub(crate) fn push(&self, mut command: SlowCommand) {
        command.id = self.next_id.fetch_add(1, Ordering::Relaxed);
        command.args = shortened(&command.args);
        let len_max = self.len_max.load(Ordering::Relaxed);
        let mut commands = self.commands.lock();
        commands.push_front(command);
        commands.truncate(len_max);
    }

    /// The last `count`, newest first.
    pub(crate) fn last(&self, count: usize) -> Vec<SlowCommand> {
        self.commands.lock().iter().take(count).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.commands.lock().len()
    }

    pub(crate) fn clear(&self) {
        self.commands.lock().clear();
    }

    /// Forgets the oldest beyond `len_max`.
    pub(crate) fn set_len_max(&self, len_max: usize) {
        self.len_max.store(len_max, Ordering::Relaxed);
        self.commands.lock().truncate(len_max);
    }
}

/// Copies, as Redis shortens them.
fn shortened(args: &[Bytes]) -> Vec<Bytes> {
    let kept = if args.len() > ARGS_MAX {
        ARGS_MAX - 1
    } else {
        args.len()
    };
    let shortened = args
        .iter()
        .take(kept)
        .map(|arg| match arg.get(..ARG_BYTES_MAX) {
            Some(head) if arg.len() > ARG_BYTES_MAX => {
                let more = arg.len() - ARG_BYTES_MAX;
                [head, format!("... ({more} more bytes)").as_bytes()]
                    .concat()
                    .into()
            }
            _ => Bytes::copy_from_slice(arg),
        });
    let mut shortened: Vec<Bytes> = shortened.collect();
    if args.len() > kept {
        shortened.push(format!("... ({} more arguments)", args.len() - kept).into());
    }
    shortened
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(args: Vec<Bytes>) -> SlowCommand {
        SlowCommand {
            id: 0,
            at_s: 0,
            took: Duration::from_secs(1),
            args,
            address: String::new(),
            name: String::new(),
        }
    }

    #[test]
    fn the_newest_commands_are_kept_and_long_ones_shortened() {
        let log = SlowLog::default();
        assert!(log.takes(Duration::from_millis(10)) && !log.takes(Duration::from_millis(9)));
        log.set_len_max(2);
        for arg in ["a", "b", "c"] {
            log.push(command(vec![arg.into()]));
        }
        let ids: Vec<_> = log.last(9).iter().map(|command| command.id).collect();
        assert_eq!(ids, [2, 1]);
        log.push(command(vec![vec![b'x'; 130].into(); 40]));
        let args = &log.last(1)[0].args;
        assert_eq!(
            (args.len(), args[31].as_ref()),
            (32, b"... (9 more arguments)".as_slice())
        );
        assert!(args[0].ends_with(b"... (2 more bytes)"));
    }
}

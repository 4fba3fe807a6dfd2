//! The commands of a transaction, until `EXEC`.

use bytes::Bytes;

use crate::command::{Command, Flags, Queued};
use crate::reply::{CommandError, Reply};

/// The commands since `MULTI`.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    queued: Vec<Queued>,
    bytes: usize,
    is_spoilt: bool,
}

impl Transaction {
    /// `EXEC` will refuse it.
    pub(super) fn spoil(&mut self) {
        self.is_spoilt = true;
    }

    pub(super) fn len(&self) -> usize {
        self.queued.len()
    }

    /// What its commands take in memory, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a command with its arguments, as long as all of them have at most `bytes_max`.
    pub(super) fn queue(
        &mut self,
        command: &'static Command,
        args: &mut Vec<Bytes>,
        bytes_max: usize,
    ) -> Reply {
        /// Of an argument in memory, beside its bytes.
        const ARG_BYTES: usize = size_of::<Bytes>();
        if command.flags.has(Flags::NO_MULTI) {
            self.spoil();
            return Reply::Error(CommandError::new(
                "ERR Command not allowed inside a transaction",
            ));
        }
        let args_bytes: usize = args.iter().map(|arg| arg.len() + ARG_BYTES).sum();
        let bytes = size_of::<Queued>() + args_bytes;
        if self.bytes + bytes > bytes_max {
            // Nothing of it can be executed any more.
            self.queued = Vec::new();
            self.bytes = 0;
            self.spoil();
            return Reply::Error(CommandError::new("ERR the transaction is too large"));
        }
        self.bytes += bytes;
        // Copies: a slice would keep the whole buffer that it was received in, which may be far longer.
        let kept = args.drain(..).map(|arg| Bytes::copy_from_slice(&arg));
        self.queued.push((command, kept.collect()));
        Reply::Simple("QUEUED")
    }

    /// The commands.
    ///
    /// # Errors
    /// One of them was refused.
    pub(super) fn into_queued(self) -> Result<Vec<Queued>, CommandError> {
        match self.is_spoilt {
            false => Ok(self.queued),
            true => Err(CommandError::new(
                "EXECABORT Transaction discarded because of previous errors.",
            )),
        }
    }
}

//! Whose call is next, when several threads use a device.

use crate::fault::Call;

/// A moment at which a device asks whose turn it is. It holds no lock of its own then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The thread is about to make a call.
    Before(Call),
    /// A write or a flush of the thread has begun and not ended: calls of others are in flight together
    /// with it. A flush that they make does not speak for that write; that flush does not speak for
    /// what they write.
    Within(Call),
}

/// Decides the order of the calls of several threads: a device calls [`wait`](Self::wait) in the
/// thread that makes a call, and goes on when it returns.
pub trait Turns: Send + Sync {
    /// Returns when it is the calling thread's turn: whether its process is still alive. If not, the
    /// call fails with `Io`; what it was about to do is not done. A write that is in flight ends, a
    /// flush does not.
    fn wait(&self, moment: Moment) -> bool;
}

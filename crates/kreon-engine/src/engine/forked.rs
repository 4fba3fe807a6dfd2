//! What a process does with an open store that it inherited from the one it was forked from: nothing.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// Keeps what two handles stand for, for ever: to end it would end threads that do not exist in this process, and wait
/// for locks that no thread of this process will release.
pub fn leak<A, B>((one, other): (&Arc<A>, &Arc<B>)) {
    std::mem::forget(Arc::clone(one));
    std::mem::forget(Arc::clone(other));
}

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future without the store: its own futures end with an error.
pub fn wait_for<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

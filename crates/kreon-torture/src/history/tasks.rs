//! Writes and gets as futures.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use kreon_base::Result as Said;
use kreon_engine::{Durability, GetTask, Operation, Show};
use kreon_judge::Call;

use super::handle::Handle;
use super::session::{End, Session};
use super::values;

/// A get that has begun.
struct Begun {
    call: Call,
    handle: Handle,
    key: usize,
    task: GetTask,
    outcome: Option<Found>,
}

/// What a get found: nothing, a version, or something that nobody wrote.
type Found = Said<Option<Result<u64, String>>>;

/// Wakes a thread.
struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for `future` without a part in the store's reads: its own thread ends them.
fn wait_for<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Waits for a future in one of both ways.
fn await_here<F: Future>(session: &mut Session<'_>, future: F) -> F::Output {
    match session.dice.below(2) {
        0 => session.world.engine.drive(future),
        _ => wait_for(future),
    }
}

/// Applies a unit; one that is to be durable now and then as a future.
pub fn apply(
    session: &mut Session<'_>,
    operations: &[Operation<'_>],
    durability: Durability,
) -> Said<()> {
    let engine = &session.world.engine;
    match (durability, session.dice.below(3)) {
        (Durability::Sync, 0) => {
            let durable = engine.write_async(operations);
            await_here(session, durable)
        }
        _ => engine.write(operations, durability),
    }
}

/// Up to eight gets at once, each a call of its own.
pub fn get_async(session: &mut Session<'_>) -> Result<(), End> {
    let count = 1 + session.dice.below(8);
    let mut gets = Vec::new();
    for _ in 0..count {
        let (handle, key) = (session.any_region(), session.any_key());
        let mut call = session.call("get_async");
        call.invoked = session.world.now();
        let task = session.world.engine.get_task(&handle.region, None);
        let outcome = None;
        gets.push(Begun {
            call,
            handle,
            key,
            task,
            outcome,
        });
    }
    let world = session.world;
    await_here(
        session,
        std::future::poll_fn(|context| {
            for get in gets.iter_mut().filter(|get| get.outcome.is_none()) {
                let key = world.keys[get.key].as_slice();
                let polled = get.task.poll(key, context.waker(), Show(values::decode));
                if let Poll::Ready(found) = polled {
                    get.call.returned = Some(world.now());
                    get.outcome = Some(found);
                }
            }
            match gets.iter().all(|get| get.outcome.is_some()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }),
    );
    for get in gets {
        if let Some(found) = get.outcome {
            session.record_read(get.call, &get.handle, get.key, found)?;
        }
    }
    Ok(())
}

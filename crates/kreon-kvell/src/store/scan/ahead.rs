//! Values on their way: those that were read, and those that are being read while the caller takes them.

use std::collections::VecDeque;
use std::sync::Arc;

use kreon_base::Result;

use super::known::Known;
use crate::format::key_hash;
use crate::partition::{Origin, Request, Task};
use crate::store::answer::outcome_of;
use crate::store::call::Call;
use crate::store::handle::{Asked, Handle, check_may_wait};

/// A key with its value, or without one if it was deleted meanwhile; or a failure, of a key if that is known.
pub struct Outcome {
    pub key: Option<Vec<u8>>,
    pub value: Result<Option<Vec<u8>>>,
}

/// Values of keys in order.
#[derive(Default)]
pub struct Ahead {
    ready: VecDeque<Outcome>,
    under_way: Option<UnderWay>,
    /// Keys of the last step.
    step: usize,
}

/// Keys whose values are being read.
struct UnderWay {
    keys: Vec<Result<Known>>,
    call: Arc<Call>,
}

impl Ahead {
    /// Whether the next step is due: nothing is being read, and half of what was is taken.
    pub fn is_low(&self) -> bool {
        self.under_way.is_none() && self.ready.len() <= self.step / 2
    }

    /// Values that are there.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Begins to read the values of `keys`, which follow those before.
    pub fn begin(&mut self, handle: &Handle, keys: Vec<Result<Known>>) -> Result<()> {
        let seal = handle.shared()?.seal;
        let known = keys.iter().filter_map(|known| known.as_ref().ok());
        let asked = known.map(|known| Asked {
            partition: known.partition,
            request: Request {
                ticket: None,
                key: known.key.clone(),
                key_hash: key_hash(seal, &known.key),
                task: Task::Get,
            },
            origin: Origin::Scan { near: known.near },
        });
        let call = handle.begin_many(asked.collect())?;
        self.step = keys.len();
        self.under_way = Some(UnderWay { keys, call });
        Ok(())
    }

    /// The next value; waits for it. `None`: nothing is there or under way.
    pub fn next(&mut self, handle: &Handle) -> Result<Option<Outcome>> {
        if self.ready.is_empty()
            && let Some(UnderWay { keys, call }) = self.under_way.take()
        {
            // In a forked child nobody would answer.
            handle.shared()?;
            check_may_wait()?;
            let mut replies = call.wait().into_iter();
            self.ready.extend(keys.into_iter().map(|known| match known {
                Ok(known) => Outcome {
                    key: Some(known.key),
                    value: outcome_of(replies.next().flatten()),
                },
                Err(error) => Outcome {
                    key: None,
                    value: Err(error),
                },
            }));
        }
        Ok(self.ready.pop_front())
    }
}

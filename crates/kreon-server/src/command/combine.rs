//! Writes of several connections that wait for the same locks: whoever gets them runs the writes of all of them.
//!
//! Two threads whose connections write one key would else hand its lock to and fro for each command, at the cost of a
//! thread switch each time.

use std::cell::RefCell;
use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::slice;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::oneshot;

use super::execute::execute;
use super::pipeline::{Pipeline, Scratch};
use crate::keyspace::{Client, Held, Keyspace, Stripes};
use crate::reply::Reply;

/// The pipelines of one thread's connections that wait for locks.
#[derive(Debug, Default)]
pub(crate) struct Combiner {
    waiting: RefCell<Vec<Waiting>>,
    scratch: RefCell<Scratch>,
}

#[derive(Debug)]
struct Waiting {
    pipeline: Pipeline,
    stripes: Stripes,
    /// Gets the pipeline back when it was run.
    owner: oneshot::Sender<Pipeline>,
}

impl Combiner {
    /// Runs a pipeline up to a command that must be run alone, as soon as the locks of its keys are free. `None`: whoever ran
    /// it has panicked.
    pub(crate) async fn run(
        &self,
        keyspace: &Arc<Keyspace>,
        mut pipeline: Pipeline,
    ) -> Option<Pipeline> {
        let stripes = pipeline.stripes(keyspace);
        if let Some(held) = keyspace.locks().try_alone(stripes.clone()) {
            let alone = slice::from_mut(&mut pipeline);
            let mut scratch = self.scratch.borrow_mut();
            scratch.run_all(keyspace, alone, &stripes, held);
            return Some(pipeline);
        }
        let (owner, mut receiver) = oneshot::channel();
        let is_served_by_another = self.has_waiting_for(&stripes);
        self.waiting.borrow_mut().push(Waiting {
            pipeline,
            stripes: stripes.clone(),
            owner,
        });
        if is_served_by_another {
            // A place of its own in the queue of the lock would be granted in vain, and hold up other threads.
            return receiver.await.ok();
        }
        let mut locks = pin!(keyspace.locks().alone(stripes.clone()));
        poll_fn(|context| {
            if let Poll::Ready(done) = pin!(&mut receiver).poll(context) {
                return Poll::Ready(done);
            }
            match locks.as_mut().poll(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(held) => {
                    self.run_waiting(keyspace, &stripes, held);
                    // Its own is among them.
                    pin!(&mut receiver).poll(context)
                }
            }
        })
        .await
        .ok()
    }

    /// Whether another pipeline waits for the same locks: whoever runs that runs this with it.
    fn has_waiting_for(&self, stripes: &Stripes) -> bool {
        let waiting = self.waiting.borrow();
        waiting.iter().any(|other| other.stripes == *stripes)
    }

    /// Runs a pipeline to its end, with what must be run alone; for the fuzzer and tests. The replies are fewer than the commands
    /// if a command panics.
    pub(crate) async fn run_to_end(
        &self,
        keyspace: &Arc<Keyspace>,
        client: &Client,
        mut pipeline: Pipeline,
    ) -> Vec<Reply> {
        let mut replies = Vec::new();
        while !pipeline.is_empty() {
            let Some(run) = self.run(keyspace, pipeline).await else {
                break;
            };
            pipeline = run;
            let (done, epoch) = pipeline.take_done();
            client.rests_on(epoch);
            replies.extend(done.map(|(_, reply)| reply));
            if let Some((command, args)) = pipeline.take_first() {
                replies.push(execute(keyspace, client, command, &args).await);
            }
        }
        replies
    }

    /// Runs the pipelines that wait for nothing but `held`, which are `stripes`, and for locks that are free.
    fn run_waiting(&self, keyspace: &Arc<Keyspace>, stripes: &Stripes, held: Held) {
        let (mut all, mut held) = (stripes.clone(), vec![held]);
        let (mut pipelines, mut owners, mut left) = (Vec::new(), Vec::new(), Vec::new());
        let all_waiting = mem::take(&mut *self.waiting.borrow_mut());
        for waiting in all_waiting {
            let missing: Vec<u16> = waiting
                .stripes
                .iter()
                .filter(|&stripe| !all.has(stripe))
                .collect();
            if !missing.is_empty() {
                let Some(more) = keyspace.locks().try_alone(Stripes::of(missing.clone())) else {
                    left.push(waiting);
                    continue;
                };
                held.push(more);
                all = Stripes::of(all.iter().chain(missing));
            }
            pipelines.push(waiting.pipeline);
            owners.push(waiting.owner);
        }
        self.waiting.borrow_mut().extend(left);
        let mut scratch = self.scratch.borrow_mut();
        scratch.run_all(keyspace, &mut pipelines, &all, held);
        for (owner, pipeline) in owners.into_iter().zip(pipelines) {
            // A connection that has ended does not miss it.
            let _ = owner.send(pipeline);
        }
    }
}

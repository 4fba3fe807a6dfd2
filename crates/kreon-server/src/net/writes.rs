//! Writes of a turn that follow one another: they are gathered while requests are parsed, and run together.

use std::mem;
use std::time::Instant;

use super::answers::lap;
use super::connection::{Connection, End};
use crate::command::{Command, Pipeline};
use crate::reply::Reply;
use crate::session::Answer;

impl Connection {
    /// Adds the request in `args` to the pipeline.
    pub(super) fn gather(&mut self, command: &'static Command) {
        let spare = self.worker.buffers.args();
        let args = mem::replace(&mut self.args, spare);
        self.pipeline
            .push(self.session.client.db.get(), command, args);
    }

    /// Answers the requests of the pipeline.
    pub(super) async fn settle(&mut self, begun: &mut Instant) -> Result<(), End> {
        while !self.pipeline.is_empty() {
            let pipeline = mem::take(&mut self.pipeline);
            let keyspace = &self.worker.shared.keyspace;
            let run = self.worker.combiner.run(keyspace, pipeline);
            let Some(mut pipeline) = run.await else {
                return Err(End::Fault);
            };
            self.answer_done(&mut pipeline, begun);
            let next = pipeline.take_first();
            self.pipeline = pipeline;
            if self.flush_some().await? {
                *begun = Instant::now();
            }
            if let Some((command, mut args)) = next {
                if let Answer::One(reply) = self.session.run(command, &mut args).await {
                    let took = lap(begun);
                    self.reply(&reply);
                    self.note_slow(command, &args, took);
                    self.note(command, took, matches!(reply, Reply::Error(_)));
                }
                if self.flush_some().await? {
                    *begun = Instant::now();
                }
            }
        }
        Ok(())
    }

    /// Replies to what was run together. Each command counts as an equal share of the time.
    fn answer_done(&mut self, pipeline: &mut Pipeline, begun: &mut Instant) {
        let (done, epoch) = pipeline.take_done();
        self.session.client.rests_on(epoch);
        let count = u32::try_from(done.len()).unwrap_or(u32::MAX).max(1);
        let took = lap(begun) / count;
        for ((command, args), reply) in done {
            self.reply(&reply);
            self.note_slow(command, &args, took);
            self.note(command, took, matches!(reply, Reply::Error(_)));
            self.worker.buffers.put_args(args);
        }
    }
}

//! Buffers of one thread, lent to its connections for as long as they hold something: ten thousand idle connections hold none,
//! and the few that are busy find theirs in the processor's caches.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

use crate::command::Pipeline;

/// What is read at once, if nothing larger is expected.
pub(super) const READ_BYTES: usize = 16 << 10;
/// Larger ones are not kept for others.
pub(super) const KEPT_BYTES_MAX: usize = 64 << 10;
/// Spare ones of a kind.
const SPARE_MAX: usize = 64;

/// Arguments that memory is kept for.
pub(super) const ARGS_KEPT_MAX: usize = 1024;
/// Spare lists of arguments: those of a long pipeline.
const SPARE_ARGS_MAX: usize = 256;

/// Empty buffers.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    inputs: RefCell<Vec<BytesMut>>,
    outputs: RefCell<Vec<Vec<u8>>>,
    pipelines: RefCell<Vec<Pipeline>>,
    args: RefCell<Vec<Vec<Bytes>>>,
}

impl Buffers {
    /// One to read into.
    pub(super) fn input(&self) -> BytesMut {
        let spare = self.inputs.borrow_mut().pop();
        spare.unwrap_or_else(|| BytesMut::with_capacity(READ_BYTES))
    }

    /// Takes back an empty one that was never larger than [`KEPT_BYTES_MAX`]: what is left of it behind requests does not tell.
    pub(super) fn put_input(&self, input: BytesMut) {
        let mut inputs = self.inputs.borrow_mut();
        if inputs.len() < SPARE_MAX {
            inputs.push(input);
        }
    }

    /// One for replies.
    pub(super) fn output(&self) -> Vec<u8> {
        let spare = self.outputs.borrow_mut().pop();
        spare.unwrap_or_else(|| Vec::with_capacity(READ_BYTES))
    }

    /// Takes back one whose replies were sent.
    pub(super) fn put_output(&self, mut output: Vec<u8>) {
        output.clear();
        let mut outputs = self.outputs.borrow_mut();
        if output.capacity() > 0 && output.capacity() <= KEPT_BYTES_MAX && outputs.len() < SPARE_MAX
        {
            outputs.push(output);
        }
    }

    /// One to gather writes in.
    pub(super) fn pipeline(&self) -> Pipeline {
        self.pipelines.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back an empty one.
    pub(super) fn put_pipeline(&self, pipeline: Pipeline) {
        let mut pipelines = self.pipelines.borrow_mut();
        if pipeline.is_empty() && pipelines.len() < SPARE_MAX {
            pipelines.push(pipeline);
        }
    }

    /// One for the arguments of a request.
    pub(super) fn args(&self) -> Vec<Bytes> {
        self.args.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back one whose request was answered.
    pub(super) fn put_args(&self, mut args: Vec<Bytes>) {
        args.clear();
        args.shrink_to(ARGS_KEPT_MAX);
        let mut spare = self.args.borrow_mut();
        if spare.len() < SPARE_ARGS_MAX {
            spare.push(args);
        }
    }
}

//! Systems without `io_uring`: there are no rings, and whoever asks for one is refused.

use std::io::{self, IoSliceMut};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::batch::TransferBatch;
use super::slice::Slice;
use crate::device::{Ended, ReadQueue};
use crate::process::HomeProcess;
use crate::stats::DeviceCounters;
use crate::transfer_queue::{Transfer, Transferred};

/// A ring: there is none.
pub(super) enum Ring {}

impl Ring {
    pub(super) fn new(_: u32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn is_broken(&self) -> bool {
        match *self {}
    }

    pub(super) fn run<S: Slice>(
        &mut self,
        _: BorrowedFd<'_>,
        _: &mut TransferBatch<S>,
        _: &DeviceCounters,
    ) {
        match *self {}
    }
}

/// A queue on a ring: there is none.
pub(crate) enum RingQueue {}

impl RingQueue {
    pub(crate) fn new(_: OwnedFd, _: u32, _: Arc<DeviceCounters>) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ReadQueue for RingQueue {
    unsafe fn push(&self, _: u64, _: u64, _: &mut [IoSliceMut<'_>]) -> bool {
        match *self {}
    }

    fn waiting(&self) -> usize {
        match *self {}
    }

    fn in_flight(&self) -> usize {
        match *self {}
    }

    fn depth(&self) -> usize {
        match *self {}
    }

    fn submit(&self) {
        match *self {}
    }

    fn wait(&self, _: usize, _: Duration) {
        match *self {}
    }

    fn reap(&self, _: &mut Vec<Ended>) {
        match *self {}
    }

    fn is_broken(&self) -> bool {
        match *self {}
    }
}

/// Transfers in flight on a ring: there is none.
pub(crate) enum RingTransfers {}

impl RingTransfers {
    pub(crate) fn new(
        _: OwnedFd,
        _: u32,
        _: u32,
        _: HomeProcess,
        _: Arc<DeviceCounters>,
    ) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn is_broken(&self) -> bool {
        match *self {}
    }

    pub(crate) fn has_waiting(&self) -> bool {
        match *self {}
    }

    pub(crate) fn is_woken(&self) -> bool {
        match *self {}
    }

    pub(crate) fn hear(&mut self) {
        match *self {}
    }

    pub(crate) fn waker(&self) -> Waker {
        match *self {}
    }

    pub(crate) fn push(&mut self, _: u64, _: Transfer) -> Result<(), (u64, Transfer)> {
        match *self {}
    }

    pub(crate) fn enter(&mut self, _: Duration) {
        match *self {}
    }

    pub(crate) fn land(&mut self, _: impl FnMut(Transferred)) {
        match *self {}
    }
}

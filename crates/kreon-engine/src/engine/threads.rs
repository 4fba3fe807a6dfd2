//! The background threads of a store.

use std::sync::Arc;
use std::thread::JoinHandle;

use kreon_base::{Error, Result};

use super::core::Core;
use crate::sync::Ordering;

/// The threads that spill, merge levels, collect, write the log out, flush for tasks, take images of L0, and write
/// segments ahead for the log.
pub fn start_threads(core: &Arc<Core>) -> Result<Vec<JoinHandle<()>>> {
    let start = |name: &str, body: fn(&Arc<Core>)| {
        let core = Arc::clone(core);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                kreon_device::take_short_turns();
                body(&core);
            })
            .map_err(|error| Error::io(format!("start thread {name}"), error))
    };
    Ok(vec![
        start("kreon-spill", Core::spill_loop)?,
        // Two, so that the upper levels are merged beside a long merge of lower ones.
        start("kreon-merge", Core::merge_loop)?,
        start("kreon-merge-2", Core::merge_loop)?,
        start("kreon-gc", Core::collect_loop)?,
        // Two, so that the device has work while one sees to what it has done.
        start("kreon-reorg", Core::reorganise_loop)?,
        start("kreon-log", Core::write_out_loop)?,
        start("kreon-log-2", Core::write_out_loop)?,
        start("kreon-flush", Core::flush_loop)?,
        start("kreon-image", Core::image_loop)?,
        start("kreon-ahead", Core::prepare_loop)?,
    ])
}

impl Core {
    fn write_out_loop(self: &Arc<Self>) {
        struct Writing<'a>(&'a Core);
        impl Drop for Writing<'_> {
            fn drop(&mut self) {
                self.0.parts.log.end_writing();
            }
        }
        self.parts.log.begin_writing();
        let _writing = Writing(self);
        while !self.closed.load(Ordering::Acquire) {
            self.parts.log.wait_for_work();
            if let Err(error) = self.parts.log.write_out_step() {
                self.parts.poison.set(&error);
            }
        }
        // The other one, too.
        self.parts.log.wake_writer();
    }
}

//! The threads of a client.

use std::sync::Arc;
use std::thread::JoinHandle;

use crate::driver::Driver;
use crate::error::Result;

/// A driver with its threads, which end when this is dropped.
pub(crate) struct Running {
    pub(crate) driver: Arc<Driver>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(driver: Driver) -> Result<Self> {
        let mut running = Self {
            driver: Arc::new(driver),
            threads: Vec::new(),
        };
        let (links, map) = (running.driver.clone(), running.driver.clone());
        running.spawn("kreon-client", move || links.run())?;
        running.spawn("kreon-map", move || map.session.run(&map))?;
        Ok(running)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        let thread = thread.map_err(|error| kreon_base::Error::io("begin a thread", error))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.driver.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

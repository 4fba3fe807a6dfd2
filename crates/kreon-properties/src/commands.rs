//! Sequences of commands of Redis: one by one as in transactions.

use std::sync::Arc;

use kreon::Store;
use kreon_sim::{SimDevice, SimOptions};

/// Memory of the store, in bytes.
const MEMORY_BYTES: usize = 8 << 20;

/// See [`check_commands`](kreon_server::fuzzing::check_commands).
pub fn commands(bytes: &[u8]) {
    let device = SimDevice::new(SimOptions {
        record: false,
        ..SimOptions::default()
    });
    let options = Store::options().memory_bytes(MEMORY_BYTES);
    match options.open_on(Arc::new(device)) {
        Ok(store) => kreon_server::fuzzing::check_commands(store, bytes),
        Err(error) => panic!("an empty store can be made: {error}"),
    }
}

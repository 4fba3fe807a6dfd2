//! Signals that ask the command to end: seen between two rows or pairs, so that the store is closed and the
//! user is told what is in it.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use kreon::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::failure::{Failure, Result, tell};
use crate::place::Place;

/// Whether the end was asked for. Clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// The number of the signal; 0: none came.
    signal: Arc<AtomicUsize>,
    /// Signals since the last command of the shell began.
    presses: Arc<AtomicUsize>,
}

impl Interrupt {
    /// From now on the first SIGINT or SIGTERM only sets the flag; the second ends the process at once.
    pub fn on_signals() -> Result<Self> {
        let interrupt = Self::default();
        let came = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let number = Arc::clone(&interrupt.signal);
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&came))
                .and_then(|_| flag::register_usize(signal, number, signal as usize))
                .and_then(|_| flag::register(signal, Arc::clone(&came)))
                .map_err(failed)?;
        }
        Ok(interrupt)
    }

    /// For the shell. At a terminal SIGINT sets the flag, which ends a scan. Any other signal, and SIGINT where
    /// lines come from a pipe, makes all writes durable and ends the process.
    pub fn in_shell(place: &Place, at_terminal: bool) -> Result<Self> {
        let interrupt = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
        if at_terminal {
            // The terminal goes away; under `nohup` a pipe stays.
            signals.add_signal(SIGHUP).map_err(failed)?;
        }
        let (watched, place) = (interrupt.clone(), place.clone());
        thread::spawn(move || {
            for signal in signals.forever() {
                if signal != SIGINT || !at_terminal {
                    end(&place, signal);
                }
                watched.signal.store(SIGINT as usize, Ordering::SeqCst);
                match watched.presses.fetch_add(1, Ordering::SeqCst) {
                    0 => {}
                    1 => tell(
                        "kreon: this command cannot be interrupted; Ctrl-C once more leaves kreon",
                    ),
                    _ => end(&place, SIGINT),
                }
            }
        });
        Ok(interrupt)
    }

    /// Fails once the end was asked for.
    pub fn check(&self) -> Result<()> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure::interrupted(signal as i32)),
        }
    }

    /// The signal that asked for the end, if one did.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// The next command of the shell begins.
    pub fn clear(&self) {
        self.presses.store(0, Ordering::SeqCst);
        self.signal.store(0, Ordering::SeqCst);
    }
}

fn end(place: &Place, signal: i32) -> ! {
    // Not `close`, which waits for a running command.
    if let Err(error) = place.sync() {
        tell(&format!("kreon: {}", error));
    }
    process::exit(128 + signal)
}

fn failed(error: io::Error) -> Failure {
    Error::io("watch for signals", error).into()
}

//! The course of the example with a few MiB: loading, a killed primary, its return, with real processes.

#[path = "../examples/two_replicas/main.rs"]
mod example;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|arg| arg == "--list") {
        println!("two_replicas: test");
        return Ok(());
    }
    example::run(example::Choice {
        mib: 6,
        memory_mib: 24,
        silence_ms: 3000,
        dir: None,
    })
}

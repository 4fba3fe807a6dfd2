//! The `kreon` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    kreon_cli::main()
}

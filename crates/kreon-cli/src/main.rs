//! The `kreon` command.
fn main() {}

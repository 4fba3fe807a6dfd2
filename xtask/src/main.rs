//! Development commands.
fn main() {}

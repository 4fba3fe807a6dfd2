//! The core workloads of YCSB (Cooper et al., SoCC 2010), as the papers run them (`Kreon 4`, table 1).

pub mod choice;
pub mod client;
pub mod mix;
pub mod pace;
pub mod phase;
pub mod record;
pub mod warm;
pub mod workload;
pub mod zipf;

#[cfg(test)]
mod tests;

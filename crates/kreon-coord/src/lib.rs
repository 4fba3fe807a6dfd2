//! The coordinator as the cluster sees it: a small trait over compare-and-set, watches and elections, and an
//! implementation in the process for tests.
#![forbid(unsafe_code)]

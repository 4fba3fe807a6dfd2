//! Where servers run: processes, their network and their disks, and how each of these fails.
//!
//! - [`shell`]: commands of the system; [`tools`]: which faults this machine can make, and what it lacks
//! - [`network`]: network namespaces on a bridge, and cuts between them
//! - [`disk`]: a file system of its own for each server: full, slow, hung
//! - [`process`]: a server as a process

pub mod disk;
pub mod network;
pub mod process;
pub mod shell;
pub mod tools;

//! The messages of the cluster as bytes: stream packets, control messages and the checks that every packet
//! passes before anything is allocated for it.
#![forbid(unsafe_code)]

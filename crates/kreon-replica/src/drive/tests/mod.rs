//! The machines on threads, sockets and files: what no machine can show alone.

mod cluster;
mod failing;
mod filter;
mod joining;
mod loss;
mod others;
mod silent;
mod volume;

//! The store through its handles.

mod arguments;
mod closing;
mod durability;
mod failures;
mod futures;
mod space;
mod threads;
mod world;

//! Which file of a crate depends on which: by imports, by paths in code, and by calls of methods.
//!
//! - [`items`], [`uses`], [`signatures`]: what the tokens say; [`brackets`]: how they nest
//! - [`files`]: the files of a crate, without tests
//! - [`names`]: what a path means; [`types`], [`methods`], [`bindings`], [`receivers`]: whose method is called
//! - [`edges`]: the graph; [`components`]: its cycles; [`source`]: all of it for one crate

mod bindings;
mod brackets;
mod components;
mod edges;
pub mod files;
pub mod items;
pub mod methods;
pub mod names;
mod receivers;
pub mod signatures;
mod source;
pub mod types;
mod uses;

pub use source::Source;

#[cfg(test)]
mod tests;

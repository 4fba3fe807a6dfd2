//! What remains of a run: JSON, a table, a page with plots.

mod claims;
mod colours;
pub mod faults;
pub mod files;
pub mod grid;
pub mod html;
mod memories;
pub mod notes;
pub mod origin;
pub mod paper;
pub mod plot;
pub mod rates;
pub mod results;
pub mod rows;
#[cfg(test)]
pub mod sample;
pub mod summary;
pub mod table;
mod tucana;

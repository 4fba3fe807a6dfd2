//! What remains of a run: JSON, a table, a page with plots.

mod colours;
pub mod faults;
pub mod files;
pub mod html;
pub mod paper;
pub mod plot;
pub mod readme;
pub mod results;
pub mod summary;
pub mod table;

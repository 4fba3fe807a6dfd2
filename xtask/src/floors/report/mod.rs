//! What no limit judges, for a reader who does.
//!
//! - [`slices`], [`shared_fields`]: who may touch what
//! - [`lengths`]: files, functions, documents
//! - [`asserts`], [`constants`]: counts
//! - [`product`]: the lines and tokens without tests

mod asserts;
mod constants;
mod lengths;
mod product;
mod shared_fields;
mod slices;

use std::path::Path;

use anyhow::Result;

use super::graph::Source;
use super::plan::Plan;

pub fn print(plan: &Plan, crates: &[Source], root: &Path) -> Result<()> {
    println!("== largest cycle of files per crate");
    for source in crates {
        let cycle = source.largest_cycle();
        println!(
            "{}: {} of {} files",
            source.name,
            cycle.len(),
            source.files.len()
        );
        if cycle.len() > plan.cycles.files_max {
            println!("    {}", cycle.join(" "));
        }
    }
    slices::print(crates);
    shared_fields::print(crates);
    lengths::print(plan, crates, root)?;
    asserts::print(crates);
    constants::print(crates);
    Ok(())
}

//! The longest files and functions of the core, and how long the core and its documents are.

use std::path::Path;

use anyhow::Result;

use super::product::{functions_of, lines};
use crate::floors::graph::Source;
use crate::floors::plan::{Plan, floor_of};
use crate::floors::sources::read;

/// As many as a reader looks at.
const SHOWN: usize = 10;

pub fn print(plan: &Plan, crates: &[Source], root: &Path) -> Result<()> {
    let floor = |source: &Source| {
        let floor = floor_of(&plan.crates.floors, &source.name)?;
        (floor <= plan.limits.core_floor_max).then_some(floor)
    };
    let core: Vec<_> = crates
        .iter()
        .filter_map(|source| Some((floor(source)?, source)))
        .collect();
    let mut files = Vec::new();
    let mut bodies = Vec::new();
    for (floor, source) in &core {
        for file in &source.files {
            let place = format!("floor {floor} {} {}", source.name, file.name);
            for function in functions_of(file) {
                bodies.push((
                    function.lines,
                    format!("{place}:{} {}", function.line, function.name),
                ));
            }
            files.push((lines(file), place));
        }
    }
    println!(
        "== longest files of floors 0 to {}, without tests",
        plan.limits.core_floor_max
    );
    print_longest(files);
    println!(
        "== longest functions of floors 0 to {}, without tests",
        plan.limits.core_floor_max
    );
    print_longest(bodies);
    println!("== lines without tests");
    let mut total = 0;
    for (floor, source) in &core {
        let lines: usize = source.files.iter().map(lines).sum();
        println!("floor {floor} {}: {lines}", source.name);
        total += lines;
    }
    println!("core: {total}");
    for document in ["README.md", "ARCHITECTURE.md"] {
        let lines = read(&root.join(document))?.lines().count();
        println!("{document}: {lines} lines");
    }
    Ok(())
}

fn print_longest(mut all: Vec<(usize, String)>) {
    all.sort_by(|a, b| b.cmp(a));
    for (lines, name) in all.iter().take(SHOWN) {
        println!("{lines:5} {name}");
    }
}

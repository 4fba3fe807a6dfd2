//! One crate, and what is asked of its graph.

use std::collections::BTreeSet;

use super::components::largest_cycle;
use super::edges::{Edges, Known, edges_of};
use super::files::File;
use super::methods::Methods;
use super::names::Names;
use super::types::{FieldValues, field_values};

/// A crate, read.
pub struct Source {
    pub name: String,
    pub files: Vec<File>,
    pub names: Names,
    pub methods: Methods,
    fields: FieldValues,
}

impl Source {
    pub fn new(name: &str, files: Vec<File>) -> Self {
        let names = Names::new(name, &files);
        Self {
            name: name.to_owned(),
            methods: Methods::new(&names, &files),
            fields: field_values(&names, &files),
            names,
            files,
        }
    }

    /// For each file those that it depends on.
    pub fn edges(&self) -> Vec<Edges> {
        let known = Known {
            names: &self.names,
            methods: &self.methods,
            fields: &self.fields,
        };
        self.files
            .iter()
            .map(|file| edges_of(&known, file))
            .collect()
    }

    /// Prints which files of the largest cycle depend on which others of it, and in which lines.
    pub fn print_largest_cycle(&self) {
        let edges = self.edges();
        let cycle = largest_cycle(&ends(&edges));
        for &from in &cycle {
            println!("{}", self.files[from].name);
            for (&to, lines) in edges[from]
                .iter()
                .filter(|&(&to, _)| to != from && cycle.contains(&to))
            {
                let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                println!("    {}: {}", self.files[to].name, lines.join(" "));
            }
        }
    }

    /// The names of the files that all depend on each other; empty if no two do.
    pub fn largest_cycle(&self) -> Vec<&str> {
        let cycle = largest_cycle(&ends(&self.edges())).into_iter();
        cycle.map(|at| self.files[at].name.as_str()).collect()
    }
}

fn ends(edges: &[Edges]) -> Vec<BTreeSet<usize>> {
    let ends = edges.iter().map(|edges| edges.keys().copied().collect());
    ends.collect()
}

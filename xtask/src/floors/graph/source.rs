//! One crate, and what is asked of its graph.

use std::collections::BTreeSet;

use super::components::largest_cycle;
use super::edges::{Known, edges_of};
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

    /// For each file the places of those that it depends on.
    pub fn edges(&self) -> Vec<BTreeSet<usize>> {
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

    /// The names of the files that all depend on each other; empty if no two do.
    pub fn largest_cycle(&self) -> Vec<&str> {
        let cycle = largest_cycle(&self.edges()).into_iter();
        cycle.map(|at| self.files[at].name.as_str()).collect()
    }
}

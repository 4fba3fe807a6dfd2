//! What a mark asks for: `rates, loads of small; stores kreon,rocksdb; workloads load_a,a; figures ops,cpu`.

use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;

use crate::engine::Kind;
use crate::report::rates::Figure;
use crate::ycsb::workload::Workload;

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Table {
    /// Of `ycsb`: figures of each store in each workload.
    Rates,
    /// Of `ycsb`: how many times better kreon is.
    Ratios,
    /// Of `ycsb`: what Load A moved, its longest requests, and what it left.
    Loads,
    /// Of `overwrite`.
    Overwrite,
    /// Of `recovery`.
    Recovery,
    /// Of `figures`.
    Engine,
}

/// What a mark asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The tables, one below the other.
    pub tables: Vec<Table>,
    /// Names of the folders of the runs.
    pub runs: Vec<String>,
    /// Only these stores, in this order; all, if there are none.
    pub stores: Vec<Kind>,
    /// Only these workloads; all, if there are none.
    pub workloads: Vec<Workload>,
    /// What a table of rates shows.
    pub figures: Vec<Figure>,
}

impl Wanted {
    /// Understands what a mark says.
    ///
    /// # Errors
    /// Of a word that nothing is known by.
    pub fn new(text: &str) -> anyhow::Result<Self> {
        let (what, choices) = text.split_once(';').unwrap_or((text, ""));
        let (tables, runs) = what
            .split_once(" of ")
            .context("a mark says `TABLES of RUNS`")?;
        let mut wanted = Self {
            tables: all(tables)?,
            runs: list(runs).map(str::to_owned).collect(),
            stores: Vec::new(),
            workloads: Vec::new(),
            figures: Figure::USUAL.to_vec(),
        };
        for choice in choices.split(';').map(str::trim).filter(|c| !c.is_empty()) {
            match choice.split_once(' ') {
                Some(("stores", names)) => wanted.stores = all(names)?,
                Some(("workloads", names)) => wanted.workloads = all(names)?,
                Some(("figures", names)) => wanted.figures = all(names)?,
                _ => bail!("`{choice}` is none of stores, workloads, figures with their names"),
            }
        }
        Ok(wanted)
    }
}

fn list(names: &str) -> impl Iterator<Item = &str> {
    names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

fn all<T: ValueEnum>(names: &str) -> anyhow::Result<Vec<T>> {
    let one = |name| T::from_str(name, true).map_err(|_| anyhow!("`{name}` is not known here"));
    list(names).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_tables_runs_stores_workloads_and_figures() {
        let text = "rates, loads of small,large; stores kreon,rocksdb; workloads load_a,c_uniform; figures ops,p9999";
        let wanted = Wanted::new(text).unwrap();
        assert_eq!(wanted.tables, [Table::Rates, Table::Loads]);
        assert_eq!(wanted.runs, ["small", "large"]);
        assert_eq!(wanted.stores, [Kind::Kreon, Kind::Rocksdb]);
        assert_eq!(wanted.workloads, [Workload::LoadA, Workload::CUniform]);
        assert_eq!(wanted.figures, [Figure::Ops, Figure::P9999]);
    }

    #[test]
    fn a_mark_without_choices_asks_for_all() {
        let wanted = Wanted::new("ratios of large").unwrap();
        assert!(wanted.stores.is_empty() && wanted.workloads.is_empty());
        assert_eq!(wanted.figures, Figure::USUAL);
    }

    #[test]
    fn unknown_words_are_errors() {
        for text in [
            "rates",
            "pictures of small",
            "rates of small; stores oracle",
            "rates of small; colour red",
        ] {
            assert!(Wanted::new(text).is_err(), "{text}");
        }
    }
}

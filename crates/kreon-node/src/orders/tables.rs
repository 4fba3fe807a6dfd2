//! Tables are made and dropped.
//!
//! A table is made by a node that says so, then a range in each of its groups, then the node says that it is done. It is dropped
//! by the end of its node: a range of a table without a node is given up by the primary of its group, when it has dropped
//! the data. Before that nobody makes the table anew, so no key is in two groups, and no dropped value comes back.

use kreon_coord::{Mode, Operation, Reply};
use kreon_wire::{FailureKind, GroupConfig, GroupId, KeyRange, TableNode};

use super::configs::Office;
use super::{Outcome, Refusal};

impl Office<'_> {
    /// Makes a table with ranges that begin at the splits. Done again, it changes nothing.
    pub fn create_table(&mut self, table: &str, splits: &[Vec<u8>]) -> Outcome {
        let node = match self.table(table)? {
            Some((node, _)) => {
                let starts = node.ranges.iter().skip(1).map(|(start, _)| start);
                if !starts.eq(splits) {
                    let text = format!("there is a table {table:?} with other splits");
                    return Err(Refusal::new(FailureKind::Exists, text));
                }
                node
            }
            None => self.begin_table(table, splits)?,
        };
        match node.creating {
            true => self.finish_table(node),
            false => Ok(()),
        }
    }

    /// A table; none if there is none.
    fn table(&mut self, table: &str) -> Outcome<Option<(TableNode, kreon_coord::Version)>> {
        let node = self.talk.read(&self.paths.table(table), false)?;
        let Some(node) = node else {
            return Ok(None);
        };
        Ok(Some((TableNode::decode(&node.data)?, node.version)))
    }

    fn begin_table(&mut self, table: &str, splits: &[Vec<u8>]) -> Outcome<TableNode> {
        let mut counts = Vec::new();
        for group in self.groups()? {
            let (config, _) = self.config(group)?;
            if has_table(&config, table) {
                let text = format!("table {table:?} is being dropped");
                return Err(Refusal::new(FailureKind::Busy, text));
            }
            counts.push((config.ranges.len(), group));
        }
        counts.sort_unstable();
        let groups = counts.iter().map(|(_, group)| *group).cycle();
        let starts = std::iter::once(Vec::new()).chain(splits.iter().cloned());
        let node = TableNode {
            table: table.to_owned(),
            creating: true,
            ranges: starts.zip(groups).collect(),
        };
        if node.check().is_err() {
            let text = "no table can have this name, or these splits";
            return Err(Refusal::new(FailureKind::InvalidArgument, text));
        }
        let path = self.paths.table(table);
        let create = Operation::Create(path, node.encode().into(), Mode::Persistent);
        match self.carry_out(create)? {
            Reply::Created(_) => Ok(node),
            // Another order, or this one before its answer was lost.
            Reply::Exists => Err(Refusal::new(FailureKind::Busy, "give the order again")),
            other => Err(crate::talk::unexpected(&other).into()),
        }
    }

    /// Gives the groups of a table their ranges.
    pub fn finish_table(&mut self, node: TableNode) -> Outcome {
        let mut groups: Vec<GroupId> = node.ranges.iter().map(|(_, group)| *group).collect();
        groups.sort_unstable();
        groups.dedup();
        for group in groups {
            self.change(group, |config| Ok(with_ranges(config, &node)))?;
        }
        loop {
            let Some((found, version)) = self.table(&node.table)? else {
                let text = format!("table {:?} was dropped meanwhile", node.table);
                return Err(Refusal::new(FailureKind::NoTable, text));
            };
            if !found.creating {
                return Ok(());
            }
            let done = TableNode {
                creating: false,
                ..found
            };
            let path = self.paths.table(&node.table);
            let set = Operation::Set(path, done.encode().into(), version);
            match self.carry_out(set)? {
                Reply::Written(_) => return Ok(()),
                Reply::Conflict | Reply::Missing => {}
                other => return Err(crate::talk::unexpected(&other).into()),
            }
        }
    }

    /// The tables that an office before has begun to make.
    pub fn unfinished(&mut self) -> Outcome<Vec<TableNode>> {
        let mut unfinished = Vec::new();
        let folder = self.paths.tables();
        for name in self.talk.children(&folder, false)?.unwrap_or_default() {
            if let Some(node) = self.talk.read(&format!("{folder}/{name}"), false)? {
                let node = TableNode::decode(&node.data)?;
                if node.creating {
                    unfinished.push(node);
                }
            }
        }
        Ok(unfinished)
    }

    /// Begins to drop a table; false if there is none.
    pub fn begin_drop(&mut self, table: &str) -> Outcome<bool> {
        loop {
            let Some((_, version)) = self.table(table)? else {
                return Ok(false);
            };
            let delete = Operation::Delete(self.paths.table(table), version);
            match self.carry_out(delete)? {
                Reply::Deleted => return Ok(true),
                Reply::Conflict | Reply::Missing => {}
                other => return Err(crate::talk::unexpected(&other).into()),
            }
        }
    }

    /// Whether no group has a range of a table any more.
    pub fn is_gone(&mut self, table: &str) -> Outcome<bool> {
        for group in self.groups()? {
            if has_table(&self.config(group)?.0, table) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

pub fn has_table(config: &GroupConfig, table: &str) -> bool {
    config.ranges.iter().any(|range| range.table == table)
}

/// The configuration with the ranges that the table has in its group; none if it has them.
fn with_ranges(mut config: GroupConfig, node: &TableNode) -> Option<GroupConfig> {
    if has_table(&config, &node.table) {
        return None;
    }
    for (index, (start, group)) in node.ranges.iter().enumerate() {
        if *group != config.group {
            continue;
        }
        let next = node.ranges.get(index + 1);
        config.ranges.push(KeyRange {
            table: node.table.clone(),
            start: start.clone(),
            end: next.map(|(start, _)| start.clone()),
        });
    }
    let order = |a: &KeyRange, b: &KeyRange| (&a.table, &a.start).cmp(&(&b.table, &b.start));
    config.ranges.sort_by(order);
    Some(config)
}

//! Strongly connected components: sets of nodes of which each reaches every other.

use std::collections::BTreeSet;

/// The largest component of the graph in which node `n` points at `edges[n]`, in order; empty if no two nodes
/// reach each other.
pub fn largest_cycle(edges: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut backward = vec![BTreeSet::new(); edges.len()];
    for (from, ends) in edges.iter().enumerate() {
        for &to in ends {
            backward[to].insert(from);
        }
    }
    let mut largest = Vec::new();
    let mut seen = vec![false; edges.len()];
    for node in 0..edges.len() {
        if seen[node] {
            continue;
        }
        let ahead = reached(edges, node);
        let component: Vec<_> = reached(&backward, node)
            .intersection(&ahead)
            .copied()
            .collect();
        for &member in &component {
            seen[member] = true;
        }
        if component.len() > largest.len().max(1) {
            largest = component;
        }
    }
    largest
}

fn reached(edges: &[BTreeSet<usize>], start: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::from([start]);
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        open.extend(edges[node].iter().filter(|&&next| reached.insert(next)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(edges: &[(usize, usize)]) -> Vec<usize> {
        let mut graph = vec![BTreeSet::new(); 6];
        for &(from, to) in edges {
            graph[from].insert(to);
        }
        largest_cycle(&graph)
    }

    #[test]
    fn the_larger_of_two_cycles_is_found() {
        let edges = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 2), (4, 5)];
        assert_eq!(cycle(&edges), [2, 3, 4]);
    }

    #[test]
    fn a_graph_that_only_goes_down_has_none() {
        assert!(cycle(&[(0, 1), (1, 2), (0, 2), (3, 3)]).is_empty());
    }
}

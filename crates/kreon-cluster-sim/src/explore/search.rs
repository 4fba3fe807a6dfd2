//! Breadth-first search over all states within bounds.

use super::seen::Seen;
use super::{Bounds, Step, Violation, World};

/// A violation, and a shortest way to it.
#[derive(Clone, Debug)]
pub struct Found {
    /// What does not hold.
    pub violation: Violation,
    /// The steps that lead there from the start.
    pub steps: Vec<Step>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// States that were seen.
    pub states: usize,
    /// Most steps from the start.
    pub depth: usize,
    /// Whether all states within the bounds were seen.
    pub is_complete: bool,
    /// The first violation.
    pub found: Option<Found>,
}

/// From which state, by its number, and by which step a state was reached first.
type Origin = (u32, Step);

/// Searches all states within `bounds`, up to the first violation.
pub fn search(bounds: &Bounds) -> Verdict {
    let mut seen = Seen::default();
    let mut origins: Vec<Option<Origin>> = vec![None];
    let mut code = Vec::new();
    let root = World::new(bounds);
    root.encode(&mut code);
    seen.add(&code);
    let mut level = vec![(0_u32, root)];
    let mut steps = Vec::new();
    let mut depth = 0;
    let verdict = |states, depth, is_complete, found| Verdict {
        states,
        depth,
        is_complete,
        found,
    };
    while !level.is_empty() {
        let mut next = Vec::new();
        for (number, world) in level {
            steps.clear();
            world.steps(bounds, &mut steps);
            for &step in &steps {
                let mut after = world.clone();
                let taken = after.take(step);
                after.encode(&mut code);
                let is_new = seen.add(&code);
                if let Err(violation) = taken {
                    origins.push(Some((number, step)));
                    let steps = way(&origins, origins.len() - 1);
                    let found = Some(Found { violation, steps });
                    return verdict(origins.len(), depth + 1, false, found);
                }
                if is_new {
                    next.push((origins.len() as u32, after));
                    origins.push(Some((number, step)));
                }
            }
            if origins.len() > bounds.states_max {
                return verdict(origins.len(), depth + 1, false, None);
            }
        }
        depth += 1;
        level = next;
    }
    verdict(origins.len(), depth, true, None)
}

/// The same, depth first: only the states of one way are kept whole, all others as fingerprints. A way to a violation is
/// not the shortest.
pub fn sweep(bounds: &Bounds) -> Verdict {
    let mut seen = Seen::default();
    let mut code = Vec::new();
    let root = World::new(bounds);
    root.encode(&mut code);
    seen.add(&code);
    let mut verdict = Verdict {
        states: 1,
        depth: 0,
        is_complete: false,
        found: None,
    };
    // Each state with the step that led to it, and the steps that were not taken from it.
    let mut way = vec![(None, next_steps(&root, bounds), root)];
    while let Some((_, steps, world)) = way.last_mut() {
        let Some(step) = steps.pop() else {
            way.pop();
            continue;
        };
        let mut after = world.clone();
        let taken = after.take(step);
        after.encode(&mut code);
        if let Err(violation) = taken {
            let before = way.iter().filter_map(|(step, ..)| *step);
            let steps = before.chain([step]).collect();
            verdict.found = Some(Found { violation, steps });
            return verdict;
        }
        if seen.add(&code) {
            verdict.states += 1;
            verdict.depth = verdict.depth.max(way.len());
            if verdict.states > bounds.states_max {
                return verdict;
            }
            way.push((Some(step), next_steps(&after, bounds), after));
        }
    }
    verdict.is_complete = true;
    verdict
}

fn next_steps(world: &World, bounds: &Bounds) -> Vec<Step> {
    let mut steps = Vec::new();
    world.steps(bounds, &mut steps);
    steps
}

/// The steps from the start to a state.
fn way(origins: &[Option<Origin>], state: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = state;
    while let Some((before, step)) = origins[at] {
        steps.push(step);
        at = before as usize;
    }
    steps.reverse();
    steps
}

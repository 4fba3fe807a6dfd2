//! How many files of a crate may all depend on each other.

use super::findings::Findings;
use super::graph::Source;
use super::plan::Cycles;
use super::ratchet;

pub fn check(plan: &Cycles, crates: &[Source], findings: &mut Findings) {
    for source in crates {
        let cycle = source.largest_cycle();
        if let Some(fault) = fault(plan, &source.name, cycle.len()) {
            findings.errors.push(format!(
                "crate {}: files in the largest cycle of imports and calls: {fault}",
                source.name
            ));
        }
    }
    for name in plan.exceptions.keys() {
        if !crates.iter().any(|source| source.name == *name) {
            findings.errors.push(format!(
                "FLOORS.toml excepts a crate {name} from [cycles] that does not exist"
            ));
        }
    }
}

fn fault(plan: &Cycles, name: &str, found: usize) -> Option<String> {
    let Some(&planned) = plan.exceptions.get(name) else {
        return (found > plan.files_max).then(|| {
            format!(
                "{found}, at most {} may be (`cargo xtask floors --report` names them)",
                plan.files_max
            )
        });
    };
    if found <= plan.files_max {
        return Some(format!(
            "{found}, which needs no exception: drop {name} from [cycles.exceptions] in FLOORS.toml"
        ));
    }
    ratchet::fault(found, planned, &format!("[cycles.exceptions] {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floors::graph::files::in_memory;

    /// What is said of a crate of `count` files, each of which imports the next and the last the first.
    fn errors(count: usize, plan: &str) -> Vec<String> {
        let root: String = (0..count).map(|at| format!("mod m{at};")).collect();
        let mut texts = vec![("lib.rs".to_owned(), root)];
        for at in 0..count {
            let next = (at + 1) % count;
            let text = format!("use crate::m{next}::T{next}; pub struct T{at};");
            texts.push((format!("m{at}.rs"), text));
        }
        let texts: Vec<_> = texts
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        let source = Source::new("house", in_memory(&texts));
        let mut findings = Findings::default();
        check(&toml::from_str(plan).unwrap(), &[source], &mut findings);
        findings.errors
    }

    #[test]
    fn a_cycle_that_is_too_large_is_an_error() {
        assert!(errors(3, "files_max = 3").is_empty());
        let errors = errors(4, "files_max = 3");
        assert!(errors[0].contains("4, at most 3 may be"), "{errors:?}");
    }

    #[test]
    fn an_exception_holds_exactly() {
        let plan = "files_max = 3\nexceptions = { house = 5 }";
        assert!(errors(5, plan).is_empty());
        assert!(errors(6, plan)[0].contains("6, at most 5 may be"));
        let below = errors(4, plan);
        assert!(
            below[0].contains("only 4, 5 were planned: set [cycles.exceptions] house"),
            "{below:?}"
        );
        let without_need = errors(3, plan);
        assert!(without_need[0].contains("drop house"), "{without_need:?}");
    }

    #[test]
    fn an_exception_for_a_crate_that_is_gone_is_an_error() {
        let errors = errors(2, "files_max = 3\nexceptions = { barn = 5 }");
        assert!(errors[0].contains("crate barn"), "{errors:?}");
    }
}

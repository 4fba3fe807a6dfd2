//! Arrows between crates, and how many dependencies the core has.

use std::collections::BTreeSet;

use super::findings::Findings;
use super::plan::{Plan, floor_of};
use crate::workspace::{Dependency, Package};

pub fn check(plan: &Plan, packages: &[Package], findings: &mut Findings) {
    for package in packages {
        let floor = floor_of(&plan.crates.floors, &package.name);
        if floor.is_none() && !plan.crates.side.contains(&package.name) {
            findings.errors.push(format!(
                "crate {} stands on no floor: give it one in FLOORS.toml",
                package.name
            ));
            continue;
        }
        // A crate that its own tests want with more features depends on itself.
        let others = |d: &&Dependency| d.path.is_some() && d.name != package.name;
        for dependency in package.dependencies.iter().filter(others) {
            if let Some(fault) = fault_of_arrow(plan, floor, dependency) {
                findings
                    .errors
                    .push(format!("crate {} {fault}", package.name));
            }
        }
    }
    check_names(plan, packages, findings);
    check_core_dependencies(plan, packages, findings);
}

/// What is wrong with an arrow from a crate on `floor` (`None`: a side crate).
fn fault_of_arrow(plan: &Plan, floor: Option<usize>, dependency: &Dependency) -> Option<String> {
    let from = floor?;
    let name = &dependency.name;
    if plan.crates.side.contains(name) {
        return (dependency.kind.as_deref() != Some("dev")).then(|| {
            format!("depends on {name}, which is for tests: make it a dev-dependency or drop it")
        });
    }
    match floor_of(&plan.crates.floors, name) {
        // Said once, where the crate itself is looked at.
        None => None,
        Some(to) if to < from => None,
        Some(to) if to == from => Some(format!(
            "depends on {name}, its sibling on floor {from}: move what both need to a lower floor"
        )),
        Some(to) => Some(format!(
            "on floor {from} depends on {name} on floor {to}: arrows never point up"
        )),
    }
}

/// Names in the plan that no crate bears any more would hide a misspelling.
fn check_names(plan: &Plan, packages: &[Package], findings: &mut Findings) {
    let named = plan.crates.floors.iter().flatten();
    let named = named.chain(&plan.crates.side).chain(&plan.crates.wells);
    for name in named.chain(plan.modules.keys()) {
        if !packages.iter().any(|p| p.name == *name) {
            findings.errors.push(format!(
                "FLOORS.toml names a crate {name} that does not exist"
            ));
        }
    }
}

/// Whether a dependency is there only in a build of the models of `cargo xtask interleavings`.
fn is_of_models(dependency: &Dependency) -> bool {
    matches!(
        dependency.target.as_deref(),
        Some("cfg(loom)" | "cfg(shuttle)")
    )
}

fn check_core_dependencies(plan: &Plan, packages: &[Package], findings: &mut Findings) {
    let limits = &plan.limits;
    let core = packages.iter().filter(|package| {
        floor_of(&plan.crates.floors, &package.name)
            .is_some_and(|floor| floor <= limits.core_floor_max)
    });
    let outside: BTreeSet<&str> = core
        .flat_map(|package| &package.dependencies)
        .filter(|d| d.path.is_none() && d.kind.as_deref() != Some("dev"))
        .filter(|d| !d.optional && !is_of_models(d))
        .map(|d| d.name.as_str())
        .collect();
    if outside.len() > limits.core_dependencies_max {
        findings.errors.push(format!(
            "the core (floors 0 to {}) has {} direct dependencies from outside, at most {} may be: {}",
            limits.core_floor_max,
            outside.len(),
            limits.core_dependencies_max,
            Vec::from_iter(outside).join(", ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        [crates]
        floors = [["base"], ["device", "format"], ["engine"]]
        side = ["sim"]
        wells = ["device"]
        [limits]
        core_floor_max = 1
        core_dependencies_max = 2
        file_lines_max = 450
        function_lines_max = 60
    "#;

    fn package(name: &str, dependencies: &[(&str, Option<&str>, bool)]) -> Package {
        Package {
            name: name.into(),
            manifest_path: "Cargo.toml".into(),
            targets: Vec::new(),
            dependencies: dependencies
                .iter()
                .map(|&(name, kind, inside)| Dependency {
                    name: name.into(),
                    kind: kind.map(Into::into),
                    path: inside.then(|| name.into()),
                    target: None,
                    optional: false,
                })
                .collect(),
            ..Package::default()
        }
    }

    /// The errors of a house in which `changed` replaces the crate of that name.
    fn errors_with(changed: Package) -> Vec<String> {
        let mut packages: Vec<_> = ["base", "device", "format", "engine", "sim"]
            .iter()
            .map(|name| package(name, &[]))
            .filter(|p| p.name != changed.name)
            .collect();
        packages.push(changed);
        let mut findings = Findings::default();
        check(&toml::from_str(PLAN).unwrap(), &packages, &mut findings);
        findings.errors
    }

    #[test]
    fn arrows_that_point_down_are_fine() {
        let engine = package("engine", &[("base", None, true), ("device", None, true)]);
        assert_eq!(errors_with(engine), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_that_points_up_is_an_error() {
        let errors = errors_with(package("base", &[("engine", None, true)]));
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains("never point up"), "{errors:?}");
    }

    #[test]
    fn an_arrow_to_a_sibling_is_an_error_in_tests_too() {
        for kind in [None, Some("dev"), Some("build")] {
            let errors = errors_with(package("format", &[("device", kind, true)]));
            assert_eq!(errors.len(), 1);
            assert!(errors[0].contains("sibling on floor 1"), "{errors:?}");
        }
    }

    #[test]
    fn a_side_crate_is_for_tests_only() {
        let in_tests = package("device", &[("sim", Some("dev"), true)]);
        assert_eq!(errors_with(in_tests), Vec::<String>::new());
        let errors = errors_with(package("device", &[("sim", None, true)]));
        assert!(errors[0].contains("for tests"), "{errors:?}");
    }

    #[test]
    fn a_crate_without_a_floor_is_an_error() {
        let errors = errors_with(package("newcomer", &[]));
        assert!(errors[0].contains("stands on no floor"), "{errors:?}");
    }

    #[test]
    fn a_planned_crate_that_is_gone_is_an_error() {
        let mut findings = Findings::default();
        check(&toml::from_str(PLAN).unwrap(), &[], &mut findings);
        // Five crates, one of them named once more as a well.
        assert_eq!(findings.errors.len(), 6);
    }

    #[test]
    fn dependencies_of_the_core_are_counted_once_each_and_without_tests() {
        let two = [
            ("a", None, false),
            ("b", None, false),
            ("c", Some("dev"), false),
        ];
        assert_eq!(errors_with(package("device", &two)), Vec::<String>::new());
        let three = [
            ("a", None, false),
            ("b", None, false),
            ("b", Some("build"), false),
            ("c", None, false),
        ];
        let mut models = package("device", &three);
        models.dependencies[3].target = Some("cfg(loom)".into());
        assert_eq!(errors_with(models), Vec::<String>::new());
        let mut of_a_feature = package("device", &three);
        of_a_feature.dependencies[3].optional = true;
        assert_eq!(errors_with(of_a_feature), Vec::<String>::new());
        let errors = errors_with(package("device", &three));
        assert!(
            errors[0].contains("3 direct dependencies from outside"),
            "{errors:?}"
        );
        assert_eq!(errors_with(package("engine", &three)), Vec::<String>::new());
    }
}

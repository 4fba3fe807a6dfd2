//! Imports between the modules of one crate.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::findings::Findings;
use super::imports::imports;
use super::plan::{Floors, floor_of};
use super::sources::rust_files;

/// Checks every file below `source` of the crate `name`. The crate root itself may import everything.
pub fn check(name: &str, floors: &Floors, source: &Path, findings: &mut Findings) -> Result<()> {
    let mut present = BTreeSet::new();
    for file in rust_files(source)? {
        let path = module_path(file.strip_prefix(source)?);
        let Some(module) = path.first() else { continue };
        if present.insert(module.clone()) && floor_of(&floors.floors, module).is_none() {
            findings.errors.push(format!(
                "module {module} of {name} stands on no floor: give it one in FLOORS.toml"
            ));
        }
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        for fault in faults(floors, &path, &text) {
            findings.errors.push(format!("{}:{fault}", file.display()));
        }
    }
    for module in floors.floors.iter().flatten() {
        if !present.contains(module) {
            findings.warnings.push(format!(
                "FLOORS.toml names a module {module} of {name} that does not exist"
            ));
        }
    }
    Ok(())
}

/// What is wrong with the imports of the module at `path`: each a line number and what to do.
fn faults(floors: &Floors, path: &[String], text: &str) -> Vec<String> {
    let Some(module) = path.first() else {
        return Vec::new();
    };
    let Some(from) = floor_of(&floors.floors, module) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    for import in imports(text, path) {
        let top = &import.top;
        let fault = match floor_of(&floors.floors, top) {
            _ if top == module => continue,
            Some(to) if to < from => continue,
            Some(to) if to == from => format!("imports {top}, its sibling on floor {from}"),
            Some(to) => format!("on floor {from} imports {top} on floor {to}: that is up"),
            None => {
                format!(
                    "imports {top}, which is no module with a floor: name the one that defines it"
                )
            }
        };
        faults.push(format!("{}: module {module} {fault}", import.line));
    }
    faults
}

/// `tree/search.rs` and `tree/search/mod.rs` are both `["tree", "search"]`; the crate root is `[]`.
pub fn module_path(file: &Path) -> Vec<String> {
    let mut path: Vec<String> = file
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let is_root = path.len() == 1 && matches!(path[0].as_str(), "lib" | "main");
    if is_root || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_in(module: &str, text: &str) -> Vec<String> {
        let floors: Floors =
            toml::from_str(r#"floors = [["volume"], ["log", "tree"], ["spill"]]"#).unwrap();
        let path: Vec<_> = module.split('/').map(str::to_owned).collect();
        faults(&floors, &path, text)
    }

    #[test]
    fn imports_of_lower_floors_and_of_oneself_are_fine() {
        let text = "use crate::volume::Volume; use crate::tree::cursor; use super::builder;";
        assert_eq!(faults_in("tree/merge", text), Vec::<String>::new());
    }

    #[test]
    fn an_import_that_goes_up_is_a_fault() {
        let faults = faults_in("volume", "\nuse crate::spill::Spill;");
        assert_eq!(faults.len(), 1);
        assert!(
            faults[0].starts_with("2: module volume on floor 0 imports spill"),
            "{faults:?}"
        );
    }

    #[test]
    fn an_import_that_goes_sideways_is_a_fault() {
        let faults = faults_in("log/tail", "fn f() { super::super::tree::get() }");
        assert!(faults[0].contains("its sibling on floor 1"), "{faults:?}");
    }

    #[test]
    fn a_detour_through_the_crate_root_is_a_fault() {
        let faults = faults_in("spill", "use crate::Engine; use crate::*;");
        assert_eq!(faults.len(), 2);
        assert!(faults[0].contains("no module with a floor"), "{faults:?}");
    }

    #[test]
    fn files_have_module_paths() {
        let path = |file: &str| module_path(Path::new(file)).join("::");
        assert_eq!(path("lib.rs"), "");
        assert_eq!(path("options.rs"), "options");
        assert_eq!(path("tree/mod.rs"), "tree");
        assert_eq!(path("tree/search.rs"), "tree::search");
    }
}

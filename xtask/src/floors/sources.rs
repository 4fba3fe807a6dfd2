//! Checks of source text: the ban on unsafe code, and lengths.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::findings::Findings;
use super::plan::Plan;
use super::tokens::{Token, What, tokens};
use crate::workspace::Package;

/// Outside the wells, the roots of all libraries and binaries forbid unsafe code.
pub fn check_forbid(plan: &Plan, package: &Package, findings: &mut Findings) -> Result<()> {
    if plan.crates.wells.contains(&package.name) {
        return Ok(());
    }
    for target in &package.targets {
        let shipped = ["lib", "bin", "proc-macro"];
        if !target.kind.iter().any(|k| shipped.contains(&k.as_str())) {
            continue;
        }
        if !forbids_unsafe(&read(&target.src_path)?) {
            findings.errors.push(format!(
                "{}: crate {} is no well: begin it with #![forbid(unsafe_code)]",
                target.src_path.display(),
                package.name
            ));
        }
    }
    Ok(())
}

fn forbids_unsafe(source: &str) -> bool {
    let wanted = tokens("#![forbid(unsafe_code)]");
    tokens(source)
        .windows(wanted.len())
        .any(|window| window.iter().zip(&wanted).all(|(a, b)| a.what == b.what))
}

/// Checks the lengths of all Rust files below `folder`; returns how many there are.
pub fn check_lengths(plan: &Plan, folder: &Path, findings: &mut Findings) -> Result<usize> {
    let files = rust_files(folder)?;
    for file in &files {
        let source = read(file)?;
        let lines = source.lines().count();
        if lines > plan.limits.file_lines_max {
            findings.errors.push(format!(
                "{}: {lines} lines, at most {} may be: split it by idea",
                file.display(),
                plan.limits.file_lines_max
            ));
        }
        for function in functions(&source) {
            if function.lines > plan.limits.function_lines_max {
                findings.warnings.push(format!(
                    "{}:{}: {} has {} lines",
                    file.display(),
                    function.line,
                    function.name,
                    function.lines
                ));
            }
        }
    }
    Ok(files.len())
}

/// All Rust files below `folder`, in order, without those that cargo made. None if it is missing.
pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

pub fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

pub struct Function {
    pub name: String,
    /// Where its `fn` stands.
    pub line: usize,
    /// From `fn` to the closing brace.
    pub lines: usize,
}

/// Every function with a body, nested ones too.
pub fn functions(source: &str) -> Vec<Function> {
    let tokens = tokens(source);
    let mut functions = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let (keyword, name) = (&pair[0], &pair[1]);
        if !keyword.is_word("fn") {
            continue;
        }
        let (Some(name), Some(end)) = (name.word(), end_of_body(&tokens[at..])) else {
            continue;
        };
        functions.push(Function {
            name: name.to_owned(),
            line: keyword.line,
            lines: end - keyword.line + 1,
        });
    }
    functions
}

/// The line on which the first braces after `tokens[0]` close; `None` if a `;` outside of brackets
/// comes first.
fn end_of_body(tokens: &[Token]) -> Option<usize> {
    let mut brackets = 0_usize;
    let mut braces = 0_usize;
    for token in tokens {
        match token.what {
            What::Mark('(' | '[') => brackets += 1,
            What::Mark(')' | ']') => brackets = brackets.saturating_sub(1),
            What::Mark(';') if brackets == 0 && braces == 0 => return None,
            What::Mark('{') => braces += 1,
            What::Mark('}') => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return Some(token.line);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ban_on_unsafe_code_is_found() {
        assert!(forbids_unsafe(
            "//! Doc.\n#![forbid( unsafe_code )]\nmod a;"
        ));
    }

    #[test]
    fn a_ban_in_a_comment_or_a_weaker_one_does_not_count() {
        assert!(!forbids_unsafe("// #![forbid(unsafe_code)]\nmod a;"));
        assert!(!forbids_unsafe("#![deny(unsafe_code)]"));
    }

    #[test]
    fn functions_are_measured_from_fn_to_closing_brace() {
        let source = "trait T {\n fn a();\n fn b(x: [u8; 4]) -> u8 {\n  if x { '}' }\n  0\n }\n}\n\
                      fn c() {}\nconst F: fn(u8) = d;";
        let found: Vec<_> = functions(source)
            .into_iter()
            .map(|f| (f.name, f.line, f.lines))
            .collect();
        assert_eq!(found, [("b".to_owned(), 3, 4), ("c".to_owned(), 8, 1)]);
    }

    #[test]
    fn a_file_that_is_too_long_is_an_error_and_a_long_function_a_warning() {
        let folder = std::env::temp_dir().join(format!("kreon-floors-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let body = "    let x = 1;\n".repeat(12);
        std::fs::write(folder.join("long.rs"), format!("fn long() {{\n{body}}}\n")).unwrap();
        let mut findings = Findings::default();
        let plan = r#"
            crates = { floors = [], side = [], wells = [] }
            limits = { core_floor_max = 0, core_dependencies_max = 0, file_lines_max = 13, function_lines_max = 13 }
        "#;
        check_lengths(&toml::from_str(plan).unwrap(), &folder, &mut findings).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(
            findings.errors[0].contains("14 lines"),
            "{:?}",
            findings.errors
        );
        assert!(
            findings.warnings[0].contains("long has 14 lines"),
            "{:?}",
            findings.warnings
        );
    }
}

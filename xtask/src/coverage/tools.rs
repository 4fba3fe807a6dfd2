//! The LLVM tools that read what the compiler's counters counted.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// `llvm-profdata` and `llvm-cov` of the compiler's own LLVM: other versions do not read its files.
pub struct Tools {
    pub profdata: PathBuf,
    pub cov: PathBuf,
}

impl Tools {
    /// Those of the toolchain's `llvm-tools`, or of the distribution if the version is the same.
    pub fn find() -> Result<Self> {
        let version = rustc(&["-vV"])?;
        let host = field(&version, "host: ").context("rustc does not tell its host")?;
        let llvm = field(&version, "LLVM version: ").context("rustc does not tell its LLVM")?;
        let major = llvm.split('.').next().unwrap_or(llvm);
        let sysroot = rustc(&["--print", "sysroot"])?;
        let folder = Path::new(sysroot.trim())
            .join("lib/rustlib")
            .join(host)
            .join("bin");
        match (
            tool(&folder, "llvm-profdata", major),
            tool(&folder, "llvm-cov", major),
        ) {
            (Some(profdata), Some(cov)) => Ok(Self { profdata, cov }),
            _ => bail!(
                "llvm-profdata and llvm-cov of LLVM {major} are missing: `rustup component add llvm-tools`, \
                 or install the package llvm-{major} of the distribution"
            ),
        }
    }
}

fn rustc(arguments: &[&str]) -> Result<String> {
    let output = Command::new("rustc")
        .args(arguments)
        .current_dir(crate::workspace::root())
        .output()
        .context("cannot start rustc")?;
    ensure!(
        output.status.success(),
        "rustc ended with {}",
        output.status
    );
    Ok(String::from_utf8(output.stdout)?)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

/// `name` in `folder`, or the one of the right version on the search path.
fn tool(folder: &Path, name: &str, major: &str) -> Option<PathBuf> {
    let candidates = [
        folder.join(name),
        format!("{name}-{major}").into(),
        name.into(),
    ];
    candidates.into_iter().find(|candidate| {
        let output = Command::new(candidate).arg("--version").output();
        output.is_ok_and(|o| is_version(&String::from_utf8_lossy(&o.stdout), major))
    })
}

/// Whether `text` has a line like `LLVM version 22.1.2-rust-1.95.0-stable`.
fn is_version(text: &str, major: &str) -> bool {
    text.lines().any(|line| {
        line.split_once("LLVM version ")
            .is_some_and(|(_, version)| version.split('.').next() == Some(major))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_of_another_llvm_is_not_taken() {
        let text = "LLVM (http://llvm.org/):\n  LLVM version 22.1.2-rust-1.95.0-stable\n";
        assert!(is_version(text, "22"));
        assert!(!is_version(text, "2"));
        assert!(!is_version(text, "19"));
        assert!(!is_version("", "22"));
    }
}

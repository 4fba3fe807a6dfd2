//! The tests of Redis, from the source package of the distribution.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

const ADAPTER: &str = include_str!("adapter.tcl");

/// Where Debian and what comes from it keep the addresses of their registries.
const APT: &str = "/etc/apt";

/// The folder of the unpacked tests; fetched if they are not there.
pub fn fetch(folder: &Path) -> Result<PathBuf> {
    let version = run(Command::new("tclsh").arg("/dev/null"), "tclsh");
    version.context("tcl is needed, the package of this name")?;
    let source = folder.join("source");
    let main = source.join("tests/test_helper.tcl");
    if !main.exists() {
        let archive = download(&folder.join("apt"))?;
        fs::create_dir_all(&source).context("cannot make a folder")?;
        let mut tar = Command::new("tar");
        tar.arg("xzf").arg(&archive).arg("-C").arg(&source);
        tar.args(["--strip-components=1", "--wildcards", "*/tests/*"]);
        run(&mut tar, "tar")?;
    }
    adapt(&source, &main)?;
    Ok(source)
}

/// Puts the adapter behind Redis' own files of support.
fn adapt(source: &Path, main: &Path) -> Result<()> {
    const BEFORE: &str = "source tests/support/util.tcl\n";
    const OURS: &str = "source tests/support/kreon.tcl\n";
    fs::write(source.join("tests/support/kreon.tcl"), ADAPTER)?;
    let text = fs::read_to_string(main).context("cannot read what starts the tests")?;
    if text.contains(OURS) {
        return Ok(());
    }
    ensure!(text.contains(BEFORE), "{} is not as known", main.display());
    fs::write(main, text.replacen(BEFORE, &format!("{BEFORE}{OURS}"), 1))?;
    Ok(())
}

/// Has apt fetch the source package into `folder`, from the registries that the machine knows, with lists of its own:
/// neither root is needed, nor are the machine's lists changed.
fn download(folder: &Path) -> Result<PathBuf> {
    let parts = folder.join("parts");
    for wanted in [
        &parts,
        &folder.join("lists/partial"),
        &folder.join("archives/partial"),
    ] {
        fs::create_dir_all(wanted).with_context(|| format!("cannot make {}", wanted.display()))?;
    }
    let mut found = list(Path::new(APT), &parts)?;
    found += list(&Path::new(APT).join("sources.list.d"), &parts)?;
    ensure!(found > 0, "apt knows no registry");
    let apt = |arguments: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.current_dir(folder)
            .args([
                "--quiet",
                "-o",
                "APT::Sandbox::User=",
                "-o",
                "Dir::Etc::sourcelist=/dev/null",
                "-o",
            ])
            .arg(format!("Dir::Etc::sourceparts={}", parts.display()))
            .arg("-o")
            .arg(format!(
                "Dir::State::lists={}",
                folder.join("lists").display()
            ))
            .arg("-o")
            .arg(format!("Dir::Cache={}", folder.display()))
            .args(arguments);
        run(&mut apt, "apt-get")
    };
    apt(&["update"])?;
    apt(&["source", "--download-only", "redis"])?;
    let files = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut names = files.into_iter().map(|entry| entry.path());
    let archive = names.find(|path| path.to_string_lossy().ends_with(".orig.tar.gz"));
    archive.context("the source package of redis has no archive")
}

/// Writes the lists of registries in `from` into `parts`, changed so that they name sources. How many there are.
fn list(from: &Path, parts: &Path) -> Result<usize> {
    let Ok(entries) = fs::read_dir(from) else {
        return Ok(0);
    };
    let mut found = 0;
    for entry in entries {
        let path = entry?.path();
        let (Some(name), Some(kind)) = (path.file_name(), path.extension().and_then(OsStr::to_str))
        else {
            continue;
        };
        if !matches!(kind, "list" | "sources") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        fs::write(parts.join(name), of_sources(&text))?;
        found += 1;
    }
    Ok(found)
}

/// A list of registries of packages as one of their sources, in both formats of apt.
fn of_sources(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    for line in text.lines() {
        let line = match line {
            line if line.starts_with("Types:") => "Types: deb-src".to_owned(),
            line if line.starts_with("deb ") || line.starts_with("deb\t") => {
                format!("deb-src{}", line.trim_start_matches("deb"))
            }
            line => line.to_owned(),
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    lines
}

fn run(command: &mut Command, name: &str) -> Result<()> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command
        .status()
        .with_context(|| format!("cannot start {name}"))?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_packages_become_lists_of_sources() {
        let old = of_sources("# deb here\ndeb [arch=x] http://a b c\ndeb-src http://a b c\n");
        assert_eq!(
            old,
            "# deb here\ndeb-src [arch=x] http://a b c\ndeb-src http://a b c\n"
        );
        let new = of_sources("Types: deb\nURIs: http://a\n");
        assert_eq!(new, "Types: deb-src\nURIs: http://a\n");
    }
}

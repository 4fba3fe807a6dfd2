//! The files of runs that tables are written from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::report::origin::Origin;
use crate::{figures, overwrite, recovery, report};

/// What a run left.
pub enum Source {
    /// `results.json` of `ycsb`.
    Ycsb(Box<report::results::Results>),
    /// `overwrite.json`.
    Overwrite(Box<overwrite::Results>),
    /// `recovery.json`.
    Recovery(Box<recovery::Results>),
    /// `engine.json` of `figures`.
    Engine(Box<figures::Results>),
}

impl Source {
    /// Where its figures come from.
    pub fn origin(&self) -> &Origin {
        match self {
            Self::Ycsb(results) => &results.origin,
            Self::Overwrite(results) => &results.origin,
            Self::Recovery(results) => &results.origin,
            Self::Engine(results) => &results.origin,
        }
    }

    fn failures(&self) -> u64 {
        match self {
            Self::Ycsb(results) => results.failures(),
            Self::Overwrite(results) => results.runs.iter().map(|run| run.failures).sum(),
            // These two write no file then.
            Self::Recovery(_) | Self::Engine(_) => 0,
        }
    }

    fn read(dir: &Path) -> anyhow::Result<Self> {
        let there = |name: &str| Some(dir.join(name)).filter(|path| path.exists());
        if let Some(path) = there("results.json") {
            return Ok(Self::Ycsb(Box::new(report::results::Results::read(&path)?)));
        }
        if let Some(path) = there("overwrite.json") {
            return Ok(Self::Overwrite(Box::new(understood(&path)?)));
        }
        if let Some(path) = there("recovery.json") {
            return Ok(Self::Recovery(Box::new(understood(&path)?)));
        }
        if let Some(path) = there("engine.json") {
            return Ok(Self::Engine(Box::new(understood(&path)?)));
        }
        bail!("{} holds no results", dir.display())
    }
}

fn understood<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let bytes = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("understand {}", path.display()))
}

/// The runs by the names of their folders, all of one commit.
pub struct Sources(BTreeMap<String, Source>);

impl Sources {
    /// Reads the folders `dirs`.
    ///
    /// # Errors
    /// Of reading; if two are of different commits or of none that is told, or a store answered wrongly.
    pub fn read(dirs: &[PathBuf]) -> anyhow::Result<Self> {
        let mut sources = BTreeMap::new();
        for dir in dirs {
            let name = dir.file_name().and_then(|name| name.to_str());
            let name = name.with_context(|| format!("{} has no name", dir.display()))?;
            let source = Source::read(dir)?;
            ensure!(source.failures() == 0, "{name}: a store answered wrongly");
            sources.insert(name.to_owned(), source);
        }
        let sources = Self(sources);
        sources.check_commits()?;
        Ok(sources)
    }

    /// Those of tests.
    #[cfg(test)]
    pub fn of(sources: impl IntoIterator<Item = (String, Source)>) -> Self {
        Self(sources.into_iter().collect())
    }

    fn check_commits(&self) -> anyhow::Result<()> {
        let commits = self
            .0
            .iter()
            .map(|(name, one)| (name, &one.origin().commit));
        let mut first: Option<(&String, &String)> = None;
        for (name, commit) in commits {
            ensure!(!commit.is_empty(), "{name}: its commit is not told");
            match first {
                Some((other, of)) if of != commit => {
                    bail!("{other} is of commit {of}, {name} of {commit}")
                }
                _ => first = Some((name, commit)),
            }
        }
        Ok(())
    }

    /// Those that a mark names.
    ///
    /// # Errors
    /// If one was not given.
    pub fn named(&self, names: &[String]) -> anyhow::Result<Vec<&Source>> {
        let one = |name: &String| {
            let found = self.0.get(name);
            found.with_context(|| format!("no folder {name} was given"))
        };
        names.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::results;

    fn of_commits(commits: [&str; 2]) -> anyhow::Result<()> {
        let named = commits.iter().zip(["one", "two"]).map(|(commit, name)| {
            let mut run = results(Vec::new(), true);
            run.origin.commit = (*commit).to_owned();
            (name.to_owned(), Source::Ycsb(Box::new(run)))
        });
        Sources::of(named).check_commits()
    }

    #[test]
    fn runs_of_two_commits_or_of_none_are_refused() {
        of_commits(["abc", "abc"]).unwrap();
        let error = of_commits(["abc", "def"]).unwrap_err().to_string();
        assert!(
            error.contains("one is of commit abc, two of def"),
            "{error}"
        );
        assert!(of_commits(["abc", ""]).is_err());
    }
}

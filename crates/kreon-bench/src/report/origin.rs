//! Where figures come from: the code, the moment, the command, the stores.

use serde::{Deserialize, Serialize};

use crate::engine::tuning::Means;
use crate::engine::{Kind, told, version};

/// The origin of a run's figures. Files of older builds lack some of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// When the run began, seconds since 1970.
    pub began_unix_seconds: u64,
    /// The commit that the bench was built from, with `-changed` behind it if files differed from it.
    pub commit: String,
    /// The command line.
    pub command: String,
    /// Versions of the stores in this build.
    pub versions: Vec<(String, String)>,
    /// How the stores were set, in words; where a run has several points, in the first.
    pub tuning: Vec<(String, String)>,
}

impl Origin {
    /// That of a run that begins now.
    pub fn now(engines: &[Kind], means: &Means) -> Self {
        let now = std::time::UNIX_EPOCH.elapsed();
        let named = |of: &dyn Fn(Kind) -> Option<String>| {
            let named = |engine: &Kind| Some((engine.name().to_owned(), of(*engine)?));
            engines.iter().filter_map(named).collect()
        };
        Self {
            began_unix_seconds: now.map_or(0, |since| since.as_secs()),
            commit: env!("KREON_COMMIT").to_owned(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            versions: named(&version::version),
            tuning: named(&|engine| told::settings(engine, means)),
        }
    }

    /// The versions as a list.
    pub fn versions_line(&self) -> String {
        let versions = self.versions.iter();
        let versions: Vec<_> = versions.map(|(name, v)| format!("{name} {v}")).collect();
        versions.join(", ")
    }

    /// The settings as a list.
    pub fn tuning_line(&self) -> String {
        let tuning = self.tuning.iter();
        let tuning: Vec<_> = tuning.map(|(name, set)| format!("{name}: {set}")).collect();
        tuning.join("; ")
    }

    /// The day on which the run began, in UTC, after H. Hinnant's `civil_from_days`.
    pub fn date(&self) -> String {
        let days = self.began_unix_seconds / 86_400 + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = match shifted_month < 10 {
            true => shifted_month + 3,
            false => shifted_month - 9,
        };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        format!("{year}-{month:02}-{day:02}")
    }

    /// The command as one types it, not as it was started.
    pub fn typed(&self) -> String {
        let (program, rest) = self.command.split_once(' ').unwrap_or((&self.command, ""));
        let name = program.rsplit('/').next().unwrap_or(program);
        format!("{name} {rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_164_800, "2024-02-29"),
            (1_795_219_199, "2026-11-20"),
        ] {
            let origin = Origin {
                began_unix_seconds: seconds,
                ..Origin::default()
            };
            assert_eq!(origin.date(), expected);
        }
    }

    #[test]
    fn commands_lose_the_folder_of_their_program() {
        let origin = Origin {
            command: "/some/where/kreon-bench ycsb --preset small".to_owned(),
            ..Origin::default()
        };
        assert_eq!(origin.typed(), "kreon-bench ycsb --preset small");
    }

    #[test]
    fn a_run_knows_its_commit_and_the_versions_of_its_stores() {
        let origin = Origin::now(&[Kind::Nothing, Kind::Kreon], &Means::default());
        assert!(!origin.commit.is_empty());
        assert_eq!(origin.versions.len(), 1);
        assert!(origin.versions_line().starts_with("kreon "));
    }
}

//! The command line: the list of commands, and the options that each takes.

use clap::{CommandFactory, Parser, Subcommand};

use crate::cluster::ClusterCommand;
use crate::command::{
    Backup, Changes, Compact, Completions, Count, Delete, Export, Get, Import, Man, Persist, Put,
    Regions, Repair, Restore, Scan, Stats, Ttl, Verify, VerifyBackup, Version,
};
use crate::failure::{EXIT_CODES, Result};
use crate::options::{
    DeletesKeys, Formatting, Groups, OnRegion, OnRegions, OnStore, OnStorePairs, Reads, ReadsKeys,
    Salvages, Shared, With, Writes,
};
use crate::serve::Serve;
use crate::session::{Opening, Session};
use crate::shell::run_shell;
use crate::sink::Sink;

const ENCODINGS: &str = "\
Keys and values are taken as they are given, byte for byte; no escapes are decoded. With --escapes \\xNN \
stands for the byte NN, in arguments, files and output. `scan` always writes in this way, so that a pair \
stays on one line; `get` does at a terminal, for what a terminal cannot show.

Options before the command are defaults for the commands that take them.";

/// A persistent ordered key-value store for flash.
#[derive(Debug, Parser)]
#[command(name = "kreon", version, after_help = format!("{ENCODINGS}\n\n{EXIT_CODES}"))]
pub struct Cli {
    #[command(flatten)]
    pub before: Shared,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Put(With<Writes, Put>),
    Get(With<Reads, Get>),
    Delete(With<DeletesKeys, Delete>),
    Ttl(With<ReadsKeys, Ttl>),
    Persist(With<DeletesKeys, Persist>),
    Scan(With<Reads, Scan>),
    Count(With<ReadsKeys, Count>),
    Changes(With<OnStorePairs, Changes>),
    Import(With<Writes, Import>),
    Export(With<Reads, Export>),
    Stats(With<OnStore, Stats>),
    Compact(With<OnRegion, Compact>),
    Verify(With<OnStore, Verify>),
    Backup(With<OnStore, Backup>),
    Restore(Restore),
    VerifyBackup(VerifyBackup),
    Repair(With<Salvages, Repair>),
    Regions(With<OnRegions, Regions>),
    /// Work with the store line by line
    ///
    /// At a terminal: Tab completes commands, regions and keys; Ctrl-C ends a running scan or count; Ctrl-D leaves.
    /// Lines are cut into words as in sh: quote blanks, backslashes and #. From a pipe the exit code is that of the
    /// first line that failed.
    Shell(With<Writes, Formatting>),
    Serve(Serve),
    Cluster(ClusterCommand),
    Version(Version),
    Completions(Completions),
    Man(Man),
}

impl Command {
    /// Options that were given after the command.
    pub fn given(&self) -> Shared {
        match self {
            Self::Put(put) => put.groups.given(),
            Self::Get(get) => get.groups.given(),
            Self::Delete(delete) => delete.groups.given(),
            Self::Ttl(ttl) => ttl.groups.given(),
            Self::Persist(persist) => persist.groups.given(),
            Self::Scan(scan) => scan.groups.given(),
            Self::Count(count) => count.groups.given(),
            Self::Changes(changes) => changes.groups.given(),
            Self::Import(import) => import.groups.given(),
            Self::Export(export) => export.groups.given(),
            Self::Stats(stats) => stats.groups.given(),
            Self::Compact(compact) => compact.groups.given(),
            Self::Verify(verify) => verify.groups.given(),
            Self::Backup(backup) => backup.groups.given(),
            Self::Repair(repair) => repair.groups.given(),
            Self::Regions(regions) => regions.groups.given(),
            Self::Shell(shell) => shell.groups.given(),
            Self::Cluster(cluster) => cluster.given(),
            Self::Serve(serve) => serve.given(),
            Self::Restore(_)
            | Self::VerifyBackup(_)
            | Self::Version(_)
            | Self::Completions(_)
            | Self::Man(_) => Shared::default(),
        }
    }

    /// How the command opens the store.
    pub fn opening(&self) -> Opening {
        Opening {
            creates_store: self.creates_store(),
            formats_store: self.formats_store(),
            reads_only: self.reads_only(),
            memory_bytes_default: self.memory_bytes_default(),
            takes_signals: matches!(self, Self::Import(_) | Self::Backup(_)),
        }
    }

    fn creates_store(&self) -> bool {
        match self {
            Self::Put(_) | Self::Import(_) | Self::Shell(_) => true,
            Self::Regions(regions) => regions.command.creates_store(),
            _ => false,
        }
    }

    fn reads_only(&self) -> bool {
        match self {
            Self::Get(_)
            | Self::Scan(_)
            | Self::Count(_)
            | Self::Changes(_)
            | Self::Export(_)
            | Self::Stats(_)
            | Self::Ttl(_)
            | Self::Verify(_) => true,
            Self::Regions(regions) => regions.command.reads_only(),
            _ => false,
        }
    }

    fn formats_store(&self) -> bool {
        match self {
            Self::Put(put) => put.command.formatting.format_store,
            Self::Import(import) => import.command.format_store,
            Self::Shell(shell) => shell.command.format_store,
            Self::Regions(regions) => regions.command.formats_store(),
            _ => false,
        }
    }

    fn memory_bytes_default(&self) -> usize {
        match self {
            Self::Put(_)
            | Self::Get(_)
            | Self::Delete(_)
            | Self::Ttl(_)
            | Self::Persist(_)
            | Self::Stats(_)
            | Self::Regions(_) => 32 << 20,
            _ => 256 << 20,
        }
    }

    /// Runs a command that opens no store, or other stores than the one named; none: the command needs it.
    pub fn run_without_store(&self, shared: &Shared, out: &mut Sink) -> Option<Result<()>> {
        Some(match self {
            // Of a store that is open elsewhere the process there tells.
            Self::Stats(stats) => return stats.command.run_elsewhere(shared, out).transpose(),
            Self::Repair(repair) => repair.command.run(shared, out),
            Self::Restore(restore) => restore.run(out),
            Self::VerifyBackup(verify) => verify.run(out),
            Self::Serve(serve) => serve.run(shared, out),
            Self::Cluster(cluster) => cluster.run(shared, out),
            Self::Version(version) => version.run(out),
            Self::Completions(completions) => completions.run(Cli::command(), out),
            Self::Man(man) => man.run(Cli::command(), out),
            _ => return None,
        })
    }

    /// Runs the command. Returns the exit code: not 0 only for failures that were already told.
    pub fn run(&self, session: &Session, out: &mut Sink) -> Result<u8> {
        match self {
            Self::Put(put) => put.command.run(session)?,
            Self::Get(get) => get.command.run(session, out)?,
            Self::Delete(delete) => delete.command.run(session)?,
            Self::Ttl(ttl) => ttl.command.run(session, out)?,
            Self::Persist(persist) => persist.command.run(session)?,
            Self::Scan(scan) => scan.command.run(session, out)?,
            Self::Count(count) => count.command.run(session, out)?,
            Self::Changes(changes) => changes.command.run(session, out)?,
            Self::Import(import) => import.command.run(session, out)?,
            Self::Export(export) => export.command.run(session)?,
            Self::Stats(stats) => stats.command.run(session, out)?,
            Self::Compact(compact) => compact.command.run(session)?,
            Self::Verify(verify) => verify.command.run(session, out)?,
            Self::Regions(regions) => regions.command.run(session, out)?,
            Self::Backup(backup) => backup.command.run(session, out)?,
            Self::Shell(_) => return run_shell(session, out),
            Self::Repair(_)
            | Self::Restore(_)
            | Self::VerifyBackup(_)
            | Self::Serve(_)
            | Self::Cluster(_)
            | Self::Version(_)
            | Self::Completions(_)
            | Self::Man(_) => {}
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::options::Target;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn shared(line: &[&str]) -> Shared {
        let cli = Cli::try_parse_from(line).unwrap();
        cli.command.given().or(&cli.before)
    }

    #[test]
    fn options_of_the_store_stand_before_or_after_the_command() {
        for line in [
            ["kreon", "-s", "x", "--memory", "1m", "get", "k"],
            ["kreon", "get", "k", "--memory", "1m", "-s", "x"],
        ] {
            let shared = shared(&line);
            assert_eq!(shared.target().unwrap(), Target::Store(PathBuf::from("x")));
            assert_eq!(shared.store.memory, Some(1 << 20));
        }
        let both = shared(&["kreon", "-s", "x", "get", "k", "-s", "y"]);
        assert_eq!(both.target().unwrap(), Target::Store(PathBuf::from("y")));
    }

    #[test]
    fn a_command_lists_only_the_options_that_mean_something_to_it() {
        let mut cli = Cli::command();
        cli.build();
        let has = |command: &str, option: &str| {
            let command = cli.find_subcommand(command).unwrap();
            command
                .get_arguments()
                .any(|arg| arg.get_long() == Some(option))
        };
        let all = [
            "store",
            "cluster",
            "key-file",
            "memory",
            "volume-max",
            "region",
            "sync",
            "encoding",
            "escapes",
            "value-encoding",
        ];
        for (command, options) in [
            ("put", &all[..]),
            ("shell", &all),
            (
                "get",
                &[
                    "store",
                    "cluster",
                    "key-file",
                    "memory",
                    "region",
                    "encoding",
                    "escapes",
                    "value-encoding",
                ],
            ),
            (
                "count",
                &[
                    "store", "cluster", "key-file", "memory", "region", "encoding", "escapes",
                ],
            ),
            ("stats", &["store", "memory"]),
            ("verify", &["store", "memory"]),
            ("compact", &["store", "memory", "volume-max", "region"]),
            ("repair", &["encoding", "escapes"]),
            ("version", &[]),
            ("completions", &[]),
            ("man", &[]),
        ] {
            for option in all {
                assert_eq!(
                    has(command, option),
                    options.contains(&option),
                    "{command} --{option}"
                );
            }
        }
    }

    #[test]
    fn every_command_says_what_it_does() {
        let mut abouts = std::collections::BTreeSet::new();
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().unwrap_or_default().to_string();
            assert!(about.len() > 10, "{}: {about}", command.get_name());
            assert!(abouts.insert(about), "{}", command.get_name());
        }
        let mut cli = Cli::command();
        cli.build();
        let get = cli.find_subcommand("get").unwrap();
        let headings = get.get_arguments().filter(|arg| arg.get_id() == "raw");
        assert_eq!(headings.filter_map(|arg| arg.get_help_heading()).count(), 0);
        assert!(cli.get_about().unwrap().to_string().contains("key-value"));
    }
}

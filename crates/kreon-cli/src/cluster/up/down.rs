//! `kreon cluster down`.

use std::path::PathBuf;

use clap::Args;
use kreon::{Error, ErrorKind};

use super::end::end;
use super::folder::Folder;
use super::plan::Plan;
use crate::failure::{Code, Failure, Result, tell};
use crate::sink::Sink;

/// End a cluster on this machine that `up` started; its data stays, and the next `up` goes on with it
#[derive(Debug, Args)]
pub struct Down {
    /// Its folder
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
}

impl Down {
    pub fn run(&self, out: &mut Sink) -> Result<()> {
        let missing = |error: Error| match error.kind() {
            ErrorKind::NotFound => Failure::new(
                Code::FileNotFound,
                error.to_string(),
                "name the folder that `kreon cluster up` was given",
            ),
            _ => error.into(),
        };
        let folder = Folder::open(&self.data, false).map_err(missing)?;
        let _turn = folder.turn()?;
        let Some(plan) = Plan::read(&folder.plan())? else {
            return Ok(out.line("nothing ran")?);
        };
        let ended = end(&folder, &plan, |step| tell(&format!("kreon: {step}")))?;
        let killed = match ended.killed {
            0 => String::new(),
            killed => format!(", {killed} of them killed"),
        };
        Ok(out.line(&match ended.processes {
            0 => "nothing ran".to_owned(),
            count => format!("{count} processes ended{killed}"),
        })?)
    }
}

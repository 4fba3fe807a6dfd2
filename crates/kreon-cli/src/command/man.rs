//! `kreon man`: the manual pages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man as Page;
use kreon::Error;

use crate::failure::Result;
use crate::sink::Sink;

/// Write the manual pages: kreon.1, and one for each command
#[derive(Debug, Args)]
pub struct Man {
    /// The folder, made if it is not there; without it the page of `kreon` goes to standard output
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Man {
    pub fn run(&self, cli: Command, out: &mut Sink) -> Result<()> {
        let failed = |error| Error::io("write the manual", error);
        let Some(folder) = &self.out else {
            let mut page = Vec::new();
            Page::new(cli).render(&mut page).map_err(failed)?;
            return Ok(out.write(&page)?);
        };
        fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(cli, folder))
            .map_err(|error| Error::io(format!("write to {}", folder.display()), error))?;
        Ok(())
    }
}

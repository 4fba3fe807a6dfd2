//! How far backups and joiners are, for clients.

use kreon_wire::{Backup, backups_body};

use super::asked::Asked;

impl Asked {
    pub fn backups(self) {
        let backups = self.hosted.backups();
        let backups: Vec<Backup> = backups.iter().map(|(backup, ..)| *backup).collect();
        self.due.answer(&backups_body(&backups));
    }
}

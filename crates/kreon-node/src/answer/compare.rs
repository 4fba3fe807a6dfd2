//! Comparison of copies, at the primary on a thread of its own, and what it asks of the others.

use std::sync::Arc;
use std::thread::Builder;

use kreon_base::{Error, ErrorKind, Result};
use kreon_sync::Mutex;
use kreon_wire::{Compared, FailureKind, Reply, digests_body};

use super::asked::Asked;
use crate::client::Due;
use crate::compare::{Copy, compare, digests};
use crate::hosted::Hosted;
use crate::orders::Orders;

impl Asked {
    /// Compares the copies of the set with the one here. One verification or comparison at a time in a group.
    pub fn compare(self, orders: &Arc<Orders>) {
        let Some(turn) = self.hosted.begin_verifying() else {
            return self.refuse(FailureKind::Busy, "the group is being verified");
        };
        // Whoever takes it answers: the thread, or this one if there is none.
        let asked = Arc::new(Mutex::new(Some(self)));
        let (of_thread, orders) = (Arc::clone(&asked), Arc::clone(orders));
        let started = Builder::new().name("kreon-compare".into()).spawn(move || {
            let asked = of_thread.lock().take();
            if let Some(asked) = asked {
                match asked.compared(&orders) {
                    Ok(compared) => asked.due.reply(&Reply::Compared(compared)),
                    Err(error) => asked.fail(&error),
                }
            }
            drop(turn);
        });
        if let Err(error) = started
            && let Some(asked) = asked.lock().take()
        {
            asked.refuse(FailureKind::Busy, &error.to_string());
        }
    }

    fn compared(&self, orders: &Orders) -> Result<Compared> {
        let gone = || Error::new(ErrorKind::Closed, "this server is not the primary any more");
        let group = self.hosted.group().ok_or_else(gone)?;
        let known = group.told().known.ok_or_else(gone)?;
        let path = self.hosted.file().ok_or_else(gone)?;
        let me = orders.me();
        let mut copies = Vec::new();
        for member in known.config.in_sync.iter().filter(|member| **member != me) {
            let link = orders
                .connect(member.server)
                .map_err(|refusal| Error::new(ErrorKind::Closed, refusal.text))?;
            if link.peer().member.process != member.process {
                let text = format!("server {} runs another start", member.server.0);
                return Err(Error::new(ErrorKind::Closed, text));
            }
            copies.push(Copy::new(*member, self.hosted.id, link));
        }
        let term = self.office.term;
        let goes_on = || match self.hosted.office() {
            Some(office) if office.term == term && !orders.is_over() => Ok(()),
            _ => Err(gone()),
        };
        compare(&self.office.engine, &path, &mut copies, &goes_on)
    }
}

/// Digests of blocks of the volume here, on a thread of its own. One at a time in a group.
pub fn tell_digests(hosted: &Arc<Hosted>, (offset, blocks): (u64, u32), due: Due) {
    let Some(path) = hosted.file() else {
        return due.fail(FailureKind::Closed, "the group has no file here");
    };
    let Some(turn) = hosted.begin_digesting() else {
        return due.fail(FailureKind::Busy, "digests of the group are being taken");
    };
    let given = Arc::new(Mutex::new(Some(due)));
    let of_thread = Arc::clone(&given);
    let started = Builder::new().name("kreon-digests".into()).spawn(move || {
        let due = of_thread.lock().take();
        let found = digests(&path, offset, blocks);
        // Who asks again at once is not to find it busy.
        drop(turn);
        match (due, found) {
            (Some(due), Ok(digests)) => due.answer(&digests_body(&digests)),
            (Some(due), Err(error)) => due.fail(FailureKind::Io, &error.to_string()),
            (None, _) => {}
        }
    });
    if let Err(error) = started
        && let Some(due) = given.lock().take()
    {
        due.fail(FailureKind::Busy, &error.to_string());
    }
}

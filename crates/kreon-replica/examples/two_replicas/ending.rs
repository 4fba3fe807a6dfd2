//! The end of the course: are both files what they should be?

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use super::client::Client;
use super::compare::{closed_file, compare, last_file, open_and_verify};
use super::course::{Course, Outcome, Running};
use super::words::{Ranges, Reply, Request};

impl Course<'_> {
    pub(super) fn compare_and_verify(
        &self,
        client: &mut Client,
        servers: [Option<Running>; 2],
        there: &[Range<u64>],
        beside: Range<u64>,
    ) -> Outcome<()> {
        // What works in the background may be writing: then the list is of a moment that is gone.
        let mut compared = (0, Some(0));
        for _ in 0..20 {
            let Reply::Occupied(ranges) = client.ask(&Request::Occupied)? else {
                return Err("no list of what is in use".into());
            };
            compared = self.compare(&ranges)?;
            if compared.1.is_none() {
                break;
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        if let (_, Some(offset)) = compared {
            return Err(format!("the files differ at {offset}").into());
        }
        println!(
            "the files are equal: {} MiB in use were compared",
            compared.0 >> 20
        );
        let Reply::Verified(problems) = client.ask(&Request::Verify)? else {
            return Err("the primary does not verify its store".into());
        };
        println!("the primary verifies its store: {problems} problems");
        drop(servers);
        let mut wrong = problems;
        for server in [1, 2] {
            let keys = there.iter().cloned().chain([beside.clone()]).flatten();
            let step = 1 + (self.choice.mib / 64) as usize;
            let found = open_and_verify(
                &closed_file(&self.base(server))?,
                self.choice.memory_mib,
                keys.step_by(step),
            )?;
            println!("the file of server {server}, opened after a kill: {found} problems");
            wrong += found;
        }
        match wrong {
            0 => Ok(()),
            _ => Err("something is wrong".into()),
        }
    }

    fn compare(&self, ranges: &Ranges) -> Outcome<(u64, Option<u64>)> {
        let (one, other): (&Path, &Path) = (&last_file(&self.base(1))?, &last_file(&self.base(2))?);
        Ok(compare(one, other, ranges)?)
    }
}

//! Regions that come and go. Each client owns one name, at most: it makes and drops the region.

use std::sync::Arc;

use kreon_base::ErrorKind;

use super::call::Seen;
use super::client::{Client, End};
use super::world::{Handle, World, name_register, name_version};

/// What stands in the mark of a region that was dropped.
const GONE: u64 = 1;

impl Client<'_> {
    pub(super) fn change_region(&mut self) -> Result<(), End> {
        if self.number as usize >= self.world.passing.len() {
            return self.find_region();
        }
        let name = World::name(self.number);
        let known = self.world.passing[self.number as usize].lock().clone();
        let is_there = self.world.engine.existing_region(&name).is_ok();
        match known {
            Some(handle) if is_there => self.drop_region(&name, &handle),
            _ => self.make_region(&name),
        }
    }

    fn make_region(&mut self, name: &str) -> Result<(), End> {
        let mut call = self.call("create region");
        call.invoked = self.world.now();
        let outcome = self.world.engine.region(name);
        call.returned = Some(self.world.now());
        let outcome = outcome.map(|region| {
            let version = Some(name_version(region.id));
            call.writes.push((name_register(self.number), version));
            let handle = Handle {
                region,
                may_go: true,
            };
            *self.world.passing[self.number as usize].lock() = Some(handle);
        });
        self.record(call, outcome)
    }

    fn drop_region(&mut self, name: &str, handle: &Handle) -> Result<(), End> {
        let mut call = self.call("drop region");
        call.invoked = self.world.now();
        let outcome = self.world.engine.drop_region(name);
        call.returned = Some(self.world.now());
        // That handles say so and that the name is free are two things, in this order.
        let mut marked = call.clone();
        marked.writes.push((handle.mark(), Some(GONE)));
        call.writes.push((name_register(self.number), None));
        self.record(marked, outcome.clone())?;
        self.record(call, outcome)
    }

    /// Looks up the region of some client by its name.
    pub(super) fn find_region(&mut self) -> Result<(), End> {
        let names = self.world.passing.len() as u64;
        if names == 0 {
            return self.open_snapshot();
        }
        let number = self.dice.below(names) as u32;
        let mut call = self.call("find region");
        call.invoked = self.world.now();
        let outcome = self.world.engine.existing_region(&World::name(number));
        call.returned = Some(self.world.now());
        let outcome = match outcome {
            Ok(region) => Ok(Seen::Version(name_version(Arc::clone(&region).id))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Seen::Absent),
            Err(error) => Err(error),
        };
        let outcome = outcome.map(|seen| call.reads.push((name_register(number), seen)));
        self.record(call, outcome)
    }
}

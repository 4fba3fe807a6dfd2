//! A client: random calls, each recorded with what it saw.

use std::sync::atomic::Ordering;

use kreon_engine::Work;
use kreon_judge::Call;

use super::mix::{Action, Mix};
use super::reader::Reader;
use super::session::{End, Session};
use super::world::World;
use super::{gets, loading, passing, tasks, transactions, writes};

/// Picks actions and does them, one after the other.
pub struct Client<'w> {
    session: Session<'w>,
    reader: Reader,
    mix: Mix,
}

impl<'w> Client<'w> {
    /// A client that has done nothing yet.
    pub fn new(world: &'w World, number: u32, mix: Mix, seed: u64) -> Self {
        Self {
            session: Session::new(world, number, mix.sync_every, seed),
            reader: Reader::default(),
            mix,
        }
    }

    /// Does `count` calls, or fewer if the world ends. Returns what it recorded.
    ///
    /// # Errors
    /// What the store should not have said.
    pub fn run(mut self, count: u64) -> Result<Vec<Call>, String> {
        let number = self.session.number;
        for _ in 0..count {
            if self.session.world.stop.load(Ordering::Relaxed) {
                break;
            }
            match self.step() {
                Ok(()) => {}
                Err(End::Cut) => break,
                Err(End::Failed(text)) => return Err(format!("client {number}: {text}")),
            }
        }
        let mut calls = self.session.calls;
        calls.extend(self.reader.finish(number));
        Ok(calls)
    }

    fn step(&mut self) -> Result<(), End> {
        let (session, reader) = (&mut self.session, &mut self.reader);
        session.world.calls.fetch_add(1, Ordering::Relaxed);
        if session.dice.below(8) == 0 {
            std::thread::yield_now();
        }
        match self.mix.pick(&mut session.dice) {
            Action::Put => writes::put(session),
            Action::Delete => writes::delete(session),
            Action::DeleteRange => writes::delete_range(session),
            Action::Batch => writes::batch(session),
            Action::Transaction => transactions::transaction(session),
            Action::Update => transactions::update(session),
            Action::Get => (0..1 + session.dice.below(6)).try_for_each(|_| gets::get(session)),
            Action::Contains => gets::contains(session),
            Action::MultiGet => gets::multi_get(session),
            Action::GetAsync => tasks::get_async(session),
            Action::OpenSnapshot => reader.open_snapshot(session),
            Action::ReadSnapshot => reader.read_snapshot(session),
            Action::CloseSnapshot => reader.close_snapshot(session),
            Action::OpenScan => reader.open_scan(session),
            Action::StepScan => reader.step_scan(session),
            Action::CloseScan => reader.close_scan(session),
            // Without names of regions there is nothing to make or to find.
            Action::ChangeRegion | Action::FindRegion if session.world.passing.is_empty() => {
                reader.open_snapshot(session)
            }
            Action::ChangeRegion => passing::change_region(session),
            Action::FindRegion => passing::find_region(session),
            Action::Sync => writes::settle(session, "sync", |world| world.engine.sync()),
            Action::Checkpoint => {
                writes::settle(session, "checkpoint", |world| world.engine.checkpoint())
            }
            // As `checkpoint_l0` of a store.
            Action::Image => writes::settle(session, "image", |world| {
                world.engine.sync()?;
                world.engine.background(Work::Image)
            }),
            Action::Load => loading::ingest(session),
        }
    }
}

//! Pipelines of several connections that wait for locks: which locks those have that run together.

use std::rc::Rc;
use std::sync::Arc;

use kreon_sim::{SimDevice, SimOptions};
use tokio::task::{JoinHandle, LocalSet, spawn_local, yield_now};

use super::{Client, Combiner, Fixture, pipeline, show};
use crate::keyspace::{Keyspace, Stripes};
use crate::settings::Persistence;

/// The connections of one thread.
struct Thread<'a> {
    keyspace: &'a Arc<Keyspace>,
    combiner: Rc<Combiner>,
}

impl<'a> Thread<'a> {
    fn of(fixture: &'a Fixture) -> Self {
        Self {
            keyspace: &fixture.keyspace,
            combiner: Rc::default(),
        }
    }

    /// Runs commands as one connection that sends them together.
    fn run(&self, lines: &[&str]) -> JoinHandle<Vec<String>> {
        let (keyspace, combiner) = (Arc::clone(self.keyspace), Rc::clone(&self.combiner));
        let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        spawn_local(async move {
            let client = Client::default();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let pipeline = pipeline(&client, &lines);
            let replies = combiner.run_to_end(&keyspace, &client, pipeline).await;
            replies.iter().map(show).collect()
        })
    }

    fn stripe(&self, key: &str) -> u16 {
        self.keyspace.locks().stripe(0, key.as_bytes())
    }

    /// A key whose lock is taken before (`is_before`) or after that of `key`: locks are taken in ascending order.
    fn other(&self, key: &str, is_before: bool) -> String {
        let mut names = (0..).map(|number| format!("other{number}"));
        let is_wanted = |name: &String| match is_before {
            true => self.stripe(name) < self.stripe(key),
            false => self.stripe(name) > self.stripe(key),
        };
        names.find(is_wanted).unwrap()
    }
}

/// Lets all tasks go as far as they can.
async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

fn locks_are_free(fixture: &Fixture) -> bool {
    fixture.keyspace.locks().try_alone(Stripes::All).is_some()
}

#[test]
fn pipelines_that_wait_for_one_lock_run_together_and_all_are_answered() {
    let fixture = Fixture::new();
    let thread = Thread::of(&fixture);
    LocalSet::new().block_on(&fixture.runtime, async {
        let stripe = Stripes::One(thread.stripe("hot"));
        let held = fixture.keyspace.locks().try_alone(stripe).unwrap();
        let runs: Vec<_> = (0..10)
            .map(|number| {
                let own = format!("SET own{number} {number}");
                thread.run(&["INCR hot", &own, "HSET hot f v", "INCR hot"])
            })
            .collect();
        settle().await;
        assert!(
            runs.iter().all(|run| !run.is_finished()),
            "the lock is held"
        );
        drop(held);
        let mut last = 0;
        for run in runs {
            let replies = run.await.unwrap();
            assert_eq!(replies[1], "OK");
            assert!(replies[2].starts_with("WRONGTYPE"));
            let number = |text: &str| -> u32 { text.trim_matches(['(', ')']).parse().unwrap() };
            let (first, second) = (number(&replies[0]), number(&replies[3]));
            assert_eq!(second, first + 1, "nobody comes between");
            last = last.max(second);
        }
        assert_eq!(last, 20);
    });
    assert_eq!(fixture.ask("GET own7"), "7");
    assert!(locks_are_free(&fixture));
}

#[test]
fn pipeline_is_not_run_for_another_while_one_of_its_locks_is_taken() {
    let fixture = Fixture::new();
    let thread = Thread::of(&fixture);
    let cold = thread.other("hot", true);
    LocalSet::new().block_on(&fixture.runtime, async {
        let [hot_held, cold_held] = ["hot", &cold].map(|key| {
            let stripe = Stripes::One(thread.stripe(key));
            fixture.keyspace.locks().try_alone(stripe).unwrap()
        });
        let both = thread.run(&["INCR hot", &format!("SET {cold} 1")]);
        let one = thread.run(&["INCR hot"]);
        yield_now().await;
        drop(hot_held);
        assert_eq!(one.await.unwrap(), ["(1)"]);
        yield_now().await;
        assert!(!both.is_finished(), "the other lock is taken");
        drop(cold_held);
        assert_eq!(both.await.unwrap(), ["(2)", "OK"]);
    });
    assert!(locks_are_free(&fixture));
}

#[test]
fn pipeline_waits_for_its_own_locks_and_not_for_those_of_others() {
    let fixture = Fixture::new();
    let thread = Thread::of(&fixture);
    let cold = thread.other("hot", true);
    LocalSet::new().block_on(&fixture.runtime, async {
        let [hot_held, cold_held] = ["hot", &cold].map(|key| {
            let stripe = Stripes::One(thread.stripe(key));
            fixture.keyspace.locks().try_alone(stripe).unwrap()
        });
        let hot = thread.run(&["INCR hot", "INCR hot"]);
        settle().await;
        let cold = thread.run(&[&format!("INCR {cold}"), &format!("INCR {cold}")]);
        settle().await;
        drop(cold_held);
        settle().await;
        assert!(cold.is_finished() && !hot.is_finished());
        drop(hot_held);
        assert_eq!(hot.await.unwrap(), ["(1)", "(2)"]);
    });
    assert!(locks_are_free(&fixture));
}

#[test]
fn pipelines_of_different_locks_run_together_with_all_of_them() {
    // Before and after that of `hot`: a lock that is not waited for, and one that is waited for next.
    for is_before in [true, false] {
        let device = Arc::new(SimDevice::new(SimOptions::default()));
        let fixture = Fixture::on(device, Persistence::Sync);
        let thread = Thread::of(&fixture);
        let cold = thread.other("hot", is_before);
        let cold_stripe = Stripes::One(thread.stripe(&cold));
        let epochs = fixture.keyspace.epochs();
        LocalSet::new().block_on(&fixture.runtime, async {
            let stripe = Stripes::One(thread.stripe("hot"));
            let held = fixture.keyspace.locks().try_alone(stripe).unwrap();
            let one = thread.run(&["INCR hot"]);
            settle().await;
            let both = thread.run(&["INCR hot", &format!("SET {cold} 1")]);
            settle().await;
            drop(held);
            assert_eq!(one.await.unwrap(), ["(1)"]);
            assert_eq!(both.await.unwrap(), ["(2)", "OK"]);
        });
        assert!(
            !epochs.is_durable(epochs.seen(&cold_stripe)),
            "who reads what was run for another connection waits for it, too"
        );
        assert!(locks_are_free(&fixture));
    }
}

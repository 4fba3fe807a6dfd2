//! How clients use stores of KVell.

use std::sync::Arc;

use ::kvell::Options;
use kreon_base::Result;
use kreon_judge::Register;
use kreon_sim::{Dice, SimDevice, SimOptions};

use super::store::Kvell;
use crate::engines::{Shared, World, seen};

impl Shared for Kvell {
    const SITTINGS: u64 = 4;
    const HAS_ONE_ORDER: bool = false;
    const NEIGHBOURS: usize = 0;
    const BUFFERED: [u64; 3] = [20, 60, 100];
    type Manner = ();

    fn manner(_dice: &mut Dice) {}

    fn device((): &(), dice: &mut Dice) -> SimOptions {
        SimOptions {
            queue_seed: dice.roll(),
            ..SimOptions::default()
        }
    }

    fn open((): &(), device: &Arc<SimDevice>, dice: &mut Dice) -> Result<Self> {
        let options = Options {
            // From a cache that holds a few cells to one that holds all.
            memory_bytes: [270 << 10, 1 << 20][dice.below(2) as usize],
            partitions: 3,
            workers: Some(1 + dice.below(3) as usize),
            depth: 1 + dice.below(8) as usize,
            index_key_bytes: [5, 32, 100][dice.below(3) as usize],
            ..Options::default()
        };
        Self::on(device, &options)
    }

    /// Several gets in one call, each of them by itself.
    fn own_call(world: &World<'_, Self>, client: u32, dice: &mut Dice) -> Result<(), String> {
        let count = world.keys.len() as u64;
        let keys: Vec<Register> = (0..4).map(|_| dice.below(count)).collect();
        let bytes: Vec<_> = keys.iter().map(|&key| &world.keys[key as usize]).collect();
        let mut call = world.begin(client, "multi_get");
        let found = world.store.region().and_then(|it| it.multi_get(&bytes));
        if let Some(found) = world.well(found)? {
            world.end(&mut call);
            let shown = found.into_iter().map(seen);
            let shown = shown.collect::<Result<Vec<_>, String>>()?;
            world.record_each(&call, keys.into_iter().zip(shown));
        }
        Ok(())
    }
}

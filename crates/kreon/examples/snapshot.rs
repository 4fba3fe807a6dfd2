//! A report of one moment, while others write: `cargo run -p kreon --example snapshot -- [FILE]`.
//!
//! Two threads move money between accounts, by batches. The report adds up all accounts again and again; the sum is the
//! same each time, as a snapshot shows a batch wholly or not at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use kreon::{Durability, Region, Result, Snapshot, Store, WriteBatch};

const ACCOUNTS: u64 = 100;
const EACH: u64 = 1000;

fn name(account: u64) -> [u8; 8] {
    account.to_be_bytes()
}

fn amount(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// Moves 1 between accounts that only this thread uses, so that no other one writes them in between.
fn transfer(store: &Store, accounts: &Region, (from, to): (u64, u64)) -> Result<()> {
    let read = |account| {
        Ok(accounts
            .get(name(account))?
            .map_or(0, |value| amount(&value)))
    };
    let (left, right) = (read(from)?, read(to)?);
    if left > 0 {
        let mut batch = WriteBatch::new();
        batch.put(accounts, name(from), (left - 1).to_le_bytes());
        batch.put(accounts, name(to), (right + 1).to_le_bytes());
        store.write(batch, Durability::Buffered)?;
    }
    Ok(())
}

fn total(snapshot: &Snapshot, accounts: &Region) -> Result<u64> {
    let mut sum = 0;
    let mut scan = snapshot.iter(accounts);
    // Nothing is copied: the value is shown where it lies.
    while scan.next_with(|_, value| sum += amount(value))?.is_some() {}
    Ok(sum)
}

fn main() -> Result<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "snapshot.kreon".into());
    let store = Store::open(&path)?;
    let accounts = store.region("accounts")?;
    for account in 0..ACCOUNTS {
        accounts.put(name(account), EACH.to_le_bytes())?;
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        for half in 0..2 {
            let (store, accounts, is_over) = (&store, &accounts, &is_over);
            threads.spawn(move || {
                let own = ACCOUNTS / 2;
                let mut turn = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let (from, to) = (turn % own, (turn * 7 + 1) % own);
                    if from != to {
                        transfer(store, accounts, (half * own + from, half * own + to))?;
                    }
                    turn += 1;
                }
                Ok::<_, kreon::Error>(())
            });
        }
        for _ in 0..20 {
            let sum = total(&store.snapshot(), &accounts)?;
            assert_eq!(sum, ACCOUNTS * EACH);
        }
        is_over.store(true, Ordering::Relaxed);
        Ok::<_, kreon::Error>(())
    })?;
    println!("the sum was {} in each of 20 snapshots", ACCOUNTS * EACH);
    store.close()
}

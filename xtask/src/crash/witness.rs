//! The process that opens a store after a kill, verifies it, and tells what it holds. It is one of its
//! own so that it can leave without closing the store, or be killed in the middle, too.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use kreon::{Region, Store};

use super::judge::State;
use super::workload::{COUNTER_KEY, Counter, REGIONS, Slot, Version};

#[derive(clap::Args)]
pub struct WitnessArguments {
    #[arg(long)]
    store: PathBuf,
    #[arg(long)]
    seed: u64,
    /// Memory budget of the store.
    #[arg(long)]
    memory_bytes: usize,
    /// Close the store at the end; otherwise the process just ends.
    #[arg(long)]
    close: bool,
}

/// The last line, which tells that the testimony is whole.
const END: &str = "end";

/// Prints the testimony; fails if the store contradicts itself.
pub fn witness(arguments: &WitnessArguments) -> Result<()> {
    let store = Store::options()
        .memory_bytes(arguments.memory_bytes)
        .open(&arguments.store)
        .context("open")?;
    let report = store.verify().context("verify")?;
    ensure!(
        report.is_clean(),
        "verify found {}",
        report.problems.join("; ")
    );
    let mut state = State::default();
    for (index, name) in (0_u8..).zip(REGIONS) {
        let region = store.region(name)?;
        look_through(&region, index, arguments.seed, &mut state)
            .with_context(|| format!("region {name}"))?;
        look_up(&region, index, arguments.seed, &state)
            .with_context(|| format!("region {name}"))?;
    }
    std::io::stdout().write_all(testimony(&state).as_bytes())?;
    if arguments.close {
        store.close().context("close")?;
        return Ok(());
    }
    std::process::exit(0)
}

/// Scans a region both ways: the keys must be in order and the values genuine.
fn look_through(region: &Region, index: u8, seed: u64, state: &mut State) -> Result<()> {
    let mut last: Option<Vec<u8>> = None;
    let mut forward = 0_u64;
    for pair in region.iter() {
        let (key, value) = pair.context("scan")?;
        let key = key.to_vec();
        ensure!(last.as_ref() < Some(&key), "scan: {key:x?} after {last:x?}");
        match read_pair(seed, index, &key, &value)? {
            Pair::Own(slot, version) => {
                state.slots.insert(slot, version);
            }
            Pair::Counter(counter) => state.counters[usize::from(index)] = Some(counter),
        }
        last = Some(key);
        forward += 1;
    }
    let mut backward = 0_u64;
    for pair in region.iter().rev() {
        let (key, _) = pair.context("scan backward")?;
        if backward > 0 {
            ensure!(
                last.as_ref().is_some_and(|last| **last > *key),
                "scan backward: {key:x?} after {last:x?}"
            );
        }
        last = Some(key.to_vec());
        backward += 1;
    }
    ensure!(
        forward == backward,
        "a scan found {forward} keys, one backward {backward}"
    );
    Ok(())
}

/// Gets every key there can be: what a scan found and nothing else must be there.
fn look_up(region: &Region, index: u8, seed: u64, state: &State) -> Result<()> {
    for slot in Slot::all().filter(|slot| slot.region == index) {
        let found = region.get(slot.key()).context("get")?;
        match (found, state.slots.get(&slot)) {
            (None, None) => {}
            (Some(value), Some(version)) if *value == *version.value(seed, slot) => {}
            (found, expected) => bail!(
                "{slot:?}: a scan found {expected:?}, a get {:?}",
                found.map(|value| Version::of_value(&value))
            ),
        }
    }
    Ok(())
}

/// A pair of the workload.
pub enum Pair {
    Own(Slot, Version),
    Counter(Counter),
}

/// Tells which write a pair comes from; fails if no write of the workload made it.
pub fn read_pair(seed: u64, region: u8, key: &[u8], value: &[u8]) -> Result<Pair> {
    if key == COUNTER_KEY {
        let counter = Counter::of_value(value)
            .with_context(|| format!("no batch set the counter to {value:x?}"))?;
        return Ok(Pair::Counter(counter));
    }
    let slot = Slot::of_key(region, key).with_context(|| format!("nobody wrote key {key:x?}"))?;
    let version = Version::of_value(value)
        .with_context(|| format!("{slot:?}: nobody wrote {} bytes", value.len()))?;
    ensure!(
        version.value(seed, slot) == value,
        "{slot:?}: the value says it is {version:?}, but its bytes are not"
    );
    Ok(Pair::Own(slot, version))
}

/// The state as lines of numbers.
fn testimony(state: &State) -> String {
    let mut text = String::new();
    for (slot, version) in &state.slots {
        let Slot {
            region,
            thread,
            index,
        } = slot;
        let Version {
            round,
            sequence,
            part,
        } = version;
        text.push_str(&format!(
            "slot {region} {thread} {index} {round} {sequence} {part}\n"
        ));
    }
    for (region, counter) in state.counters.iter().enumerate() {
        if let Some(counter) = counter {
            let value = String::from_utf8_lossy(&counter.value()).into_owned();
            text.push_str(&format!("counter {region} {value}\n"));
        }
    }
    text + END + "\n"
}

/// Reads a testimony back; `None` if it is not whole.
pub fn state_of(testimony: &str) -> Option<State> {
    let mut state = State::default();
    let mut lines = testimony.lines();
    for line in lines.by_ref() {
        if line == END {
            return lines.next().is_none().then_some(state);
        }
        if let Some(rest) = line.strip_prefix("counter ") {
            let (region, value) = rest.split_once(' ')?;
            let region: usize = region.parse().ok()?;
            *state.counters.get_mut(region)? = Some(Counter::of_value(value.as_bytes())?);
            continue;
        }
        let mut numbers = line.strip_prefix("slot ")?.split(' ');
        let mut next = || numbers.next()?.parse::<u32>().ok();
        let slot = Slot {
            region: next()?.try_into().ok()?,
            thread: next()?.try_into().ok()?,
            index: next()?.try_into().ok()?,
        };
        let version = Version {
            round: next()?,
            sequence: next()?,
            part: next()?.try_into().ok()?,
        };
        state.slots.insert(slot, version);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_testimony_reads_back_and_is_nothing_if_it_is_cut() {
        let mut state = State::default();
        for (slot, sequence) in Slot::all().step_by(97).zip(0..) {
            let version = Version {
                round: 1,
                sequence,
                part: 3,
            };
            state.slots.insert(slot, version);
        }
        state.counters[1] = Some(Counter {
            number: 4,
            round: 1,
            thread: 2,
            sequence: 3,
        });
        let text = testimony(&state);
        assert_eq!(state_of(&text), Some(state));
        for cut in [0, text.len() / 2, text.len() - 2] {
            assert_eq!(state_of(&text[..cut]), None);
        }
    }

    #[test]
    fn only_genuine_pairs_are_taken() {
        let slot = Slot::all().last().unwrap();
        let version = Version {
            round: 0,
            sequence: 5,
            part: 0,
        };
        let mut value = version.value(8, slot);
        assert!(read_pair(8, slot.region, &slot.key(), &value).is_ok());
        assert!(read_pair(8, slot.region, b"other", &value).is_err());
        *value.last_mut().unwrap() ^= 1;
        assert!(read_pair(8, slot.region, &slot.key(), &value).is_err());
    }
}

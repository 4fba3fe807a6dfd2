//! How long puts and gets of a running cluster take, one at a time, and how many there are with many under way.
//!
//! `cargo run --release -p kreon-client --example puts -- zk://127.0.0.1:2181/NAME [KEY FILE] [PUTS]`. Makes the table
//! `puts` and leaves it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use kreon_client::{ClientOptions, Cluster, Durability, ErrorKind, Key, Region};

/// Calls under way at a time.
const DEPTH: usize = 256;

/// Bytes of a value.
const VALUE_BYTES: usize = 1024;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments
        .next()
        .ok_or("zk://HOST:PORT/NAME [KEY FILE] [PUTS]")?;
    let key = match arguments.next() {
        Some(path) if !path.is_empty() => Some(Key::new(&std::fs::read(path)?)?),
        _ => None,
    };
    let puts: u32 = arguments.next().map_or(Ok(50_000), |text| text.parse())?;
    let options = ClientOptions {
        key,
        ..ClientOptions::default()
    };
    let cluster = Cluster::connect_with(&url, options)?;
    let table = match cluster.region("puts") {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            cluster.create_table("puts", &[] as &[&str])?
        }
        table => table?,
    };
    let value = vec![7; VALUE_BYTES];
    one_at_a_time("put", || table.put("one", &value))?;
    one_at_a_time("get", || table.get("one").map(drop))?;
    many(&table, puts, &value)?;
    Ok(())
}

/// Latencies of calls, each begun when the one before has ended.
fn one_at_a_time(name: &str, call: impl Fn() -> kreon_client::Result<()>) -> Outcome<()> {
    let mut times_us = Vec::new();
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        let start = Instant::now();
        call()?;
        times_us.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times_us.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| times_us[((times_us.len() - 1) as f64 * part) as usize];
    let count = times_us.len();
    println!(
        "{name}: {count} one at a time, p50 {:.0} us, p99 {:.0} us",
        at(0.5),
        at(0.99)
    );
    Ok(())
}

/// Puts with many under way, by one thread.
fn many(table: &Region, puts: u32, value: &[u8]) -> Outcome<()> {
    let start = Instant::now();
    let mut tickets = VecDeque::new();
    for number in 0..puts {
        let key = number.to_be_bytes();
        tickets.push_back(table.put_later(key, value, Durability::Replicated)?);
        if tickets.len() > DEPTH
            && let Some(ticket) = tickets.pop_front()
        {
            ticket.wait()?;
        }
    }
    tickets
        .into_iter()
        .try_for_each(kreon_client::Ticket::wait)?;
    let rate = f64::from(puts) / start.elapsed().as_secs_f64();
    println!("put: {rate:.0} a second with {DEPTH} under way, {VALUE_BYTES} bytes each");
    Ok(())
}

//! Three servers as processes, ZooKeeper, and a client of bare messages: puts of 1 KiB with two copies at depth, and single
//! puts and gets.
//!
//! `cargo run --release -p kreon-node --example load [puts at depth] [depth]`
//!
//! Needs the jars of ZooKeeper: `cargo xtask zookeeper --fetch-only`.

mod client;
mod processes;

use std::error::Error;
use std::time::{Duration, Instant};

use kreon_fabric::Address;
use kreon_wire::GroupId;

use client::Client;
use processes::Servers;

const GROUP: GroupId = GroupId(1);

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let first = args.next();
    if first.as_deref() == Some("serve") {
        return processes::serve(args);
    }
    let puts: u64 = first.map_or(Ok(1_000_000), |arg| arg.parse())?;
    let depth: u64 = args.next().map_or(Ok(256), |arg| arg.parse())?;
    let servers = Servers::start()?;
    let mut client = connect(&servers)?;
    // Warm: the first spill is over.
    client.put_all(0..puts / 10, depth)?;
    let before = servers.cpu_seconds()?;
    let start = Instant::now();
    client.put_all(0..puts, depth)?;
    let seconds = start.elapsed().as_secs_f64();
    let after = servers.cpu_seconds()?;
    println!(
        "{puts} puts of 1 KiB, {depth} under way: {:.0} k/s",
        puts as f64 / seconds / 1e3
    );
    for (name, (before, after)) in ["server 1", "server 2", "server 3", "client"]
        .iter()
        .zip(before.iter().zip(&after))
    {
        println!(
            "  {name}: {:.2} us CPU per put",
            (after - before) * 1e6 / puts as f64
        );
    }
    std::thread::sleep(Duration::from_secs(3));
    for what in ["put", "get"] {
        let mut times_us = Vec::new();
        for number in 0..5_000 {
            let start = Instant::now();
            match what {
                "put" => client.put_all(number..number + 1, 1)?,
                _ => client.get(number)?,
            }
            times_us.push(start.elapsed().as_secs_f64() * 1e6);
        }
        times_us.sort_by(f64::total_cmp);
        let at = |part: f64| times_us[(times_us.len() as f64 * part) as usize];
        println!(
            "{what}, one at a time: p50 {:.0} us, p99 {:.0} us",
            at(0.5),
            at(0.99)
        );
    }
    Ok(())
}

/// A client of the primary, when there is one of two members, with a table.
fn connect(servers: &Servers) -> Result<Client, Box<dyn Error>> {
    let start = Instant::now();
    let mut why: Box<dyn Error> = "no server".into();
    while start.elapsed() < Duration::from_secs(60) {
        for address in servers.addresses() {
            match table_at(&Address::new(address)) {
                Ok(client) => return Ok(client),
                Err(error) => why = error,
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(why)
}

fn table_at(address: &Address) -> Result<Client, Box<dyn Error>> {
    let mut client = Client::connect(address)?;
    // Only the master makes it; whether it was made shows at the primary.
    let _ = client.create_table();
    client.put_all(0..1, 1)?;
    Ok(client)
}

//! Reads and durable writes from asynchronous code: `cargo run -p kreon --example tokio -- [FILE]`.
//!
//! The futures of Kreon need no runtime of their own: a thread of the store wakes them. A thousand durable writes of one
//! thread share a few flushes.

use kreon::{Region, Store};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const WRITES: u32 = 1000;

async fn write(region: Region, number: u32) -> Outcome<()> {
    // The write is visible at once, and durable when this is over.
    region
        .put_async(number.to_be_bytes(), format!("value {number}"))
        .await?;
    Ok(())
}

async fn work(store: &Store) -> Outcome<()> {
    let region = store.region("numbers")?;
    let before = store.stats().device_flushes;
    let writes: Vec<_> = (0..WRITES)
        .map(|number| tokio::spawn(write(region.clone(), number)))
        .collect();
    for written in writes {
        written.await??;
    }
    let flushes = store.stats().device_flushes - before;
    println!("{WRITES} durable writes, {flushes} flushes");
    let value = region.get_async(7_u32.to_be_bytes()).await?;
    println!(
        "7 has {:?}",
        value.map(|value| String::from_utf8_lossy(&value).into_owned())
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "tokio.kreon".into());
    let store = Store::open(&path)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(work(&store))?;
    // Opening, closing, compaction and verification block: call them outside of asynchronous code or by `spawn_blocking`.
    store.close()?;
    Ok(())
}

//! A store, a region, a few pairs: `cargo run -p kreon --example hello -- [FILE]`.

use kreon::Store;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "hello.kreon".into());
    let store = Store::open(&path)?;
    let cities = store.region("cities")?;
    cities.put("gr/chania", "53910")?;
    cities.put("gr/heraklion", "140730")?;
    cities.put("it/pisa", "90488")?;

    if let Some(people) = cities.get("gr/chania")? {
        println!(
            "Chania has {} inhabitants",
            String::from_utf8_lossy(&people)
        );
    }
    for pair in cities.prefix("gr/") {
        let (city, people) = pair?;
        println!(
            "{} {}",
            String::from_utf8_lossy(&city),
            String::from_utf8_lossy(&people)
        );
    }
    // Also when the store is only dropped, all that was written is there when it is opened again. `close` says so if it fails.
    store.close()?;
    Ok(())
}

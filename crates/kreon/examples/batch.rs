//! Changes of two regions that a crash cannot part: `cargo run -p kreon --example batch -- [FILE]`.
//!
//! A city is kept by its code, and its code by its name. Both are written by one batch.

use kreon::{Durability, Region, Store, WriteBatch};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

struct Cities {
    store: Store,
    by_code: Region,
    by_name: Region,
}

impl Cities {
    fn add(&self, code: &str, name: &str) -> Outcome<()> {
        let mut batch = WriteBatch::new();
        batch.put(&self.by_code, code, name);
        batch.put(&self.by_name, name, code);
        // `Sync`: it survives a power cut from here on. One flush for both.
        self.store.write(batch, Durability::Sync)?;
        Ok(())
    }

    fn rename(&self, code: &str, name: &str) -> Outcome<()> {
        let old = self.by_code.get(code)?.ok_or("no such city")?;
        let mut batch = WriteBatch::new();
        batch.delete(&self.by_name, &old);
        batch.put(&self.by_code, code, name);
        batch.put(&self.by_name, name, code);
        self.store.write(batch, Durability::Sync)?;
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "batch.kreon".into());
    let store = Store::open(&path)?;
    let cities = Cities {
        by_code: store.region("by code")?,
        by_name: store.region("by name")?,
        store,
    };
    cities.add("34", "Constantinople")?;
    cities.rename("34", "Istanbul")?;
    assert!(cities.by_name.get("Constantinople")?.is_none());
    for pair in cities.by_name.iter() {
        let (name, code) = pair?;
        println!(
            "{} has the code {}",
            String::from_utf8_lossy(&name),
            String::from_utf8_lossy(&code)
        );
    }
    Ok(())
}

//! Walks over ordered keys: ranges, both directions, prefixes, seeks, and a merge join by two cursors.
//!
//! ```sh
//! cargo run --example scan
//! ```

use kreon::{Keys, Result, Store};

/// Keys that both have. Each side leaps to the key that the other one stands on, instead of walking there.
fn common(mut left: Keys, mut right: Keys) -> Result<Vec<kreon::Value>> {
    let mut common = Vec::new();
    while let (Some(a), Some(b)) = (left.peek()?, right.peek()?) {
        match a.cmp(&b) {
            std::cmp::Ordering::Less => left.seek(&b),
            std::cmp::Ordering::Greater => right.seek(&a),
            std::cmp::Ordering::Equal => {
                common.push(a);
                left.next_with(|_| ())?;
            }
        }
    }
    Ok(common)
}

fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder for the store");
    let store = Store::open(folder.path().join("store"))?;
    let (even, thirds) = (store.region("even")?, store.region("thirds")?);
    for number in 0..1000_u32 {
        if number % 2 == 0 {
            even.put(number.to_be_bytes(), format!("{number} is even"))?;
        }
        if number % 3 == 0 {
            thirds.put(number.to_be_bytes(), "")?;
        }
    }

    // A range of borrowed keys, in both directions.
    let (low, high) = (10_u32.to_be_bytes(), 16_u32.to_be_bytes());
    for pair in even.range(&low..&high) {
        println!("{}", String::from_utf8_lossy(&pair?.1));
    }
    for pair in even.range(low..=high).rev().take(2) {
        println!("from the back: {}", String::from_utf8_lossy(&pair?.1));
    }

    // One scan instead of many: forth, back, and a look at what comes next.
    let mut scan = even.iter();
    for wanted in [501_u32, 7, 998] {
        scan.seek(wanted.to_be_bytes());
        scan.peek_with(|_, value| {
            println!("from {wanted} on: {}", String::from_utf8_lossy(value))
        })?;
    }
    let mut scan = even.iter();
    scan.seek_back(501_u32.to_be_bytes());
    scan.next_back_with(|_, value| println!("up to 501: {}", String::from_utf8_lossy(value)))?;

    // Keys alone, of one moment of both regions.
    let snapshot = store.snapshot();
    let common = common(snapshot.iter(&even).keys(), snapshot.iter(&thirds).keys())?;
    println!("{} keys are in both", common.len());
    store.close()
}

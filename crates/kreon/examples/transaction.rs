//! Transfers between accounts: `transact` reads, decides and writes as one step, and is run again if another transfer
//! came between. `cargo run --release --example transaction -p kreon`

use kreon::{Error, Region, Result, Store, Transaction};

fn balance(t: &mut Transaction, accounts: &Region, name: &str) -> Result<i64> {
    let value = t.get(accounts, name)?.unwrap_or_default();
    let bytes = value.as_ref().try_into();
    Ok(bytes.map_or(0, i64::from_le_bytes))
}

/// Moves money, or nothing if there is too little.
fn transfer(store: &Store, accounts: &Region, from: &str, to: &str, cents: i64) -> Result<()> {
    store.transact(|t| {
        let left = balance(t, accounts, from)? - cents;
        if left < 0 {
            // Rolls back, and is not tried again.
            return Err(Error::invalid(format!("{from} lacks {} cents", -left)));
        }
        let grown = balance(t, accounts, to)? + cents;
        t.put(accounts, from, left.to_le_bytes())?;
        t.put(accounts, to, grown.to_le_bytes())
    })
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("kreon-transaction-{}", std::process::id()));
    let store = Store::open(&path)?;
    let accounts = store.region("accounts")?;
    for name in ["anna", "bert", "cleo"] {
        accounts.increment(name, 10_000)?;
    }
    std::thread::scope(|scope| {
        for (from, to) in [("anna", "bert"), ("bert", "cleo"), ("cleo", "anna")] {
            let (store, accounts) = (&store, &accounts);
            scope.spawn(move || {
                for _ in 0..1000 {
                    if let Err(error) = transfer(store, accounts, from, to, 7) {
                        println!("{from} to {to}: {error}");
                    }
                }
            });
        }
    });
    let mut t = store.transaction();
    let mut sum = 0;
    for name in ["anna", "bert", "cleo"] {
        let balance = balance(&mut t, &accounts, name)?;
        println!("{name}: {balance} cents");
        sum += balance;
    }
    println!("together: {sum} cents");
    drop(t);
    drop((accounts, store));
    std::fs::remove_file(&path).map_err(|error| Error::io("remove the store", error))
}

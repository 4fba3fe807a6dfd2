//! What replies hold of the budget of all connections.

use super::Fixture;
use crate::keyspace::Watching;

#[test]
fn reply_holds_its_share_of_the_budget_until_it_is_sent() {
    let fixture = Fixture::new();
    let value = "x".repeat(2000);
    for number in 0..100 {
        let set = format!("HSET h f{number} {value}");
        assert_eq!(fixture.ask(&set), "(1)");
        fixture.ask(&format!("MSET k{number} {value}"));
        fixture.ask(&format!("RPUSH l {value}"));
    }
    let keys: String = (0..100).map(|number| format!(" k{number}")).collect();
    // Taken in steps of 64 KiB: up to one of them may be missing.
    let taken = || fixture.keyspace.rooms().budget.taken_bytes();
    for line in ["HGETALL h", &format!("MGET{keys}"), "LPOP l 90"] {
        assert_eq!(taken(), 0);
        fixture.ask(line);
        assert!((120_000..300_000).contains(&taken()), "{line}: {}", taken());
        fixture.client.release();
    }
    fixture.exec(&["HGETALL h", "HVALS h"], &Watching::default());
    assert!((340_000..600_000).contains(&taken()), "{}", taken());
    fixture.client.release();
    assert_eq!(taken(), 0);
}

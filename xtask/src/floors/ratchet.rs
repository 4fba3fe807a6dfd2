//! A figure that may only fall: `FLOORS.toml` holds exactly what it is today.

/// What is wrong with `found` where the plan says `planned`; `key` tells where it says so. A figure that fell is a
/// fault too: left standing, the higher one would let the code fall back unseen.
pub fn fault(found: usize, planned: usize, key: &str) -> Option<String> {
    if found > planned {
        return Some(format!("{found}, at most {planned} may be"));
    }
    (found < planned).then(|| {
        format!("only {found}, {planned} were planned: set {key} in FLOORS.toml to {found}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_stays_or_is_a_fault() {
        assert_eq!(fault(4, 4, "a"), None);
        assert_eq!(fault(5, 4, "a").unwrap(), "5, at most 4 may be");
        assert!(
            fault(3, 4, "[a] b")
                .unwrap()
                .contains("set [a] b in FLOORS.toml to 3")
        );
    }
}

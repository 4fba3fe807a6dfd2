//! Elections: each candidate makes an ephemeral node with a number, and the lowest is in office.

/// How a candidate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has the lowest number. Before it acts, it raises the version of the fence.
    First,
    /// This one is directly before it: look again when it is gone. Nobody else is watched, so that the end of one
    /// candidate wakes one other.
    Behind(String),
    /// Its node is gone, with its session: make another one.
    Gone,
}

/// How the candidate whose node is called `own` stands among `candidates`, in any order.
pub fn standing(own: &str, candidates: &[String]) -> Standing {
    if !candidates.iter().any(|name| name == own) {
        return Standing::Gone;
    }
    let before = candidates.iter().filter(|name| name.as_str() < own);
    match before.max() {
        Some(name) => Standing::Behind(name.clone()),
        None => Standing::First,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_candidate_watches_the_one_before_it() {
        let names = ["n_2", "n_1", "n_3"].map(String::from);
        assert_eq!(standing("n_1", &names), Standing::First);
        assert_eq!(standing("n_3", &names), Standing::Behind("n_2".into()));
        assert_eq!(standing("n_4", &names), Standing::Gone);
    }
}

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

/// The number that the coordinator gave to a candidate: the last ten digits of its name. Who is called otherwise has
/// none, and stands behind all others.
fn number(name: &str) -> u64 {
    let digits = name.len().checked_sub(10).and_then(|at| name.get(at..));
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|d| d.parse().ok()).unwrap_or(u64::MAX)
}

/// How the candidate whose node is called `own` stands among `candidates`, in any order.
pub fn standing(own: &str, candidates: &[String]) -> Standing {
    if !candidates.iter().any(|name| name == own) {
        return Standing::Gone;
    }
    let place = |name: &str| (number(name), name.to_owned());
    let own = place(own);
    let before = candidates.iter().map(|name| place(name));
    match before.filter(|other| *other < own).max() {
        Some((_, name)) => Standing::Behind(name),
        None => Standing::First,
    }
}

/// The first node in the line of those whose names begin with `start`: a process may have made two, if the first
/// answer was lost.
pub fn first_of<'a>(start: &str, candidates: &'a [String]) -> Option<&'a str> {
    let own = candidates.iter().filter(|name| name.starts_with(start));
    own.map(String::as_str).min_by_key(|name| number(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_candidate_watches_the_one_before_it() {
        let names = ["n_c-0000000002", "n_b-0000000001", "n_a-0000000010"].map(String::from);
        assert_eq!(standing(&names[1], &names), Standing::First);
        let behind = Standing::Behind(names[0].clone());
        assert_eq!(standing(&names[2], &names), behind);
        assert_eq!(standing("n_d-0000000003", &names), Standing::Gone);
    }

    #[test]
    fn a_process_finds_the_first_of_its_nodes() {
        let names = ["n_a-0000000004", "n_b-0000000001", "n_a-0000000003"].map(String::from);
        assert_eq!(first_of("n_a-", &names), Some("n_a-0000000003"));
        assert_eq!(first_of("n_c-", &names), None);
    }
}

//! Which of several members that are equally good is promoted.
//!
//! Groups with the same members have different orders, so that primaries are spread, and those of a server that is lost
//! are spread over all others.

use super::ServerId;
use super::master::GroupId;

/// The servers of a group, the one first that is promoted first where reports are equal. Of groups with consecutive numbers
/// and `n` servers each, every server is the first of each `n`-th one; and so it is with the second ones of those groups
/// that have the same first one.
pub fn preference(group: GroupId, servers: &[ServerId]) -> Vec<ServerId> {
    let mut left = servers.to_vec();
    let mut order = Vec::with_capacity(left.len());
    let mut number = group.0.saturating_sub(1) as usize;
    while !left.is_empty() {
        order.push(left.remove(number % left.len()));
        number /= left.len() + 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primaries_are_spread_and_so_are_those_of_a_lost_server() {
        let servers = [1, 2, 3].map(ServerId);
        let orders: Vec<_> = (1..=12).map(|g| preference(GroupId(g), &servers)).collect();
        for first in servers {
            let of_first = orders.iter().filter(|order| order[0] == first);
            assert_eq!(of_first.clone().count(), 4);
            for second in servers.into_iter().filter(|server| *server != first) {
                assert_eq!(of_first.clone().filter(|o| o[1] == second).count(), 2);
            }
        }
        assert_eq!(orders[0], servers, "the first group keeps the order");
        assert_eq!(preference(GroupId(7), &[]), []);
    }
}

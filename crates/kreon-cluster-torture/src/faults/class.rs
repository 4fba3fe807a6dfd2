//! The classes of faults, and the order in which they come.

use kreon_sim::Dice;

use crate::place::tools::Tools;

macro_rules! classes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+) => {
        /// A class of faults.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Class { $($(#[doc = $doc])+ $name,)+ }

        impl Class {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// Its name in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

classes! {
    /// `kill -9`.
    Kill = "kill -9",
    /// SIGSTOP for three sessions.
    Pause = "frozen for three sessions",
    /// One server's packets do not reach another.
    CutOneWay = "one-way cut between servers",
    /// Neither reaches the other.
    CutTwoWay = "two-way cut between servers",
    /// It reaches ZooKeeper, and hears nothing.
    CoordinatorUnheard = "ZooKeeper's answers lost",
    /// It does not reach ZooKeeper, and the reverse.
    CoordinatorCut = "cut from ZooKeeper",
    /// It reaches only its clients.
    Isolated = "cut from all but clients",
    /// No space.
    DiskFull = "disk full",
    /// Some KiB a second.
    DiskSlow = "disk slow",
    /// Writes do not end.
    DiskHung = "disk hung",
    /// The leader of the ZooKeepers is killed.
    LeaderKilled = "ZooKeeper's leader killed",
    /// All ZooKeepers are killed.
    CoordinatorDown = "ZooKeeper down",
    /// All servers are killed at once.
    AllKilled = "all servers killed at once",
    /// Clocks go 20 % wrong.
    Clocks = "clocks 20 % wrong",
    /// A thousand clients do nothing.
    Idle = "1000 idle clients",
    /// Clients without the key.
    Keyless = "clients without the key",
    /// Clients that talk nonsense.
    Malformed = "malformed requests",
}

impl Class {
    /// Whether this machine can make it, with so many ZooKeepers.
    pub fn is_possible(self, tools: Tools, zookeepers: u32) -> bool {
        match self {
            Self::CutOneWay
            | Self::CutTwoWay
            | Self::CoordinatorUnheard
            | Self::CoordinatorCut
            | Self::Isolated => tools.has_network,
            Self::DiskFull | Self::DiskHung => tools.has_disks,
            Self::DiskSlow => tools.has_throttle,
            Self::LeaderKilled => zookeepers >= 3,
            _ => true,
        }
    }

    /// Whether it may come on top of another fault. The memory of two servers is not lost at once.
    pub const fn may_be_second(self) -> bool {
        matches!(
            self,
            Self::Pause
                | Self::CutOneWay
                | Self::CutTwoWay
                | Self::CoordinatorCut
                | Self::LeaderKilled
                | Self::Idle
                | Self::Malformed
        )
    }

    /// Whether another may come on top of it.
    pub const fn may_be_first(self) -> bool {
        !matches!(self, Self::AllKilled | Self::Clocks | Self::CoordinatorDown)
    }
}

/// Faults in an order that a seed chooses: all classes once, then all of them again in another order.
pub struct Deck {
    classes: Vec<Class>,
    left: Vec<Class>,
    dice: Dice,
}

impl Deck {
    /// Of these classes.
    pub fn new(classes: Vec<Class>, seed: u64) -> Self {
        Self {
            classes,
            left: Vec::new(),
            dice: Dice::new(seed),
        }
    }

    /// The next one.
    pub fn draw(&mut self) -> Option<Class> {
        if self.left.is_empty() {
            self.left.clone_from(&self.classes);
        }
        let at = self.dice.below(self.left.len() as u64) as usize;
        (!self.left.is_empty()).then(|| self.left.swap_remove(at))
    }

    /// One that may come on top of another, seldom.
    pub fn draw_second(&mut self) -> Option<Class> {
        if self.dice.below(3) != 0 {
            return None;
        }
        let fits = |class: &&Class| class.may_be_second();
        let all: Vec<Class> = self.classes.iter().filter(fits).copied().collect();
        let at = self.dice.below(all.len() as u64) as usize;
        all.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_comes_once_before_any_comes_again() {
        let mut deck = Deck::new(Class::ALL.to_vec(), 3);
        let mut orders = Vec::new();
        for _ in 0..3 {
            let order: Vec<Class> = Class::ALL.iter().filter_map(|_| deck.draw()).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, Class::ALL);
            orders.push(order);
        }
        assert!(orders[0] != orders[1] && orders[1] != orders[2]);
        assert_eq!(Deck::new(Vec::new(), 3).draw(), None);
    }

    #[test]
    fn a_machine_without_anything_still_kills_and_freezes() {
        let tools = Tools::default();
        let possible = |class: &&Class| class.is_possible(tools, 1);
        let left: Vec<_> = Class::ALL.iter().filter(possible).collect();
        assert!(left.contains(&&Class::Kill) && left.contains(&&Class::Pause));
        assert!(!left.contains(&&Class::Isolated) && !left.contains(&&Class::DiskHung));
    }
}

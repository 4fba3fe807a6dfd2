//! Makes faults happen, and mends everything.

use std::time::{Duration, Instant};

use kreon_sim::Dice;
use kreon_wire::ServerId;

use super::class::Class;
use super::happened::Hit;
use super::outsiders::Outsiders;
use super::witness::Witness;
use crate::cluster::settings::Settings;
use crate::cluster::view::View;
use crate::cluster::whole::Cluster;
use crate::place::network::{End, Network};

/// What happened.
#[derive(Clone, Debug)]
pub struct Made {
    /// To whom; empty: to all.
    pub victims: Vec<u32>,
    /// Groups whose primary it hit, as far as known.
    pub hit: Vec<Hit>,
    /// How long it is to last.
    pub hold: Duration,
}

/// Makes faults of a cluster.
pub struct Actor<'a> {
    /// Its processes.
    pub cluster: &'a mut Cluster,
    /// Who is primary.
    pub view: &'a View,
    /// How large it is.
    pub settings: &'a Settings,
    /// Chooses victims.
    pub dice: Dice,
    /// Clients that are borne.
    pub outsiders: Outsiders,
    /// Who asks servers that are frozen now.
    pub witnesses: Vec<Witness>,
    /// When a ZooKeeper was last started again.
    pub coordinator_back: Option<Instant>,
}

impl Actor<'_> {
    /// Whether a ZooKeeper came back less than two sessions ago.
    pub fn is_coordinator_fresh(&self) -> bool {
        let back = self.coordinator_back.map(|at| at.elapsed());
        back.is_some_and(|since| since < 2 * self.settings.session)
    }

    /// Makes a fault that lasts until [`mend`](Self::mend).
    ///
    /// # Errors
    /// It could not be made, or a server did what it should not.
    pub fn make(&mut self, class: Class) -> Result<Made, String> {
        let victim = self.victim();
        let groups = self.view.last_groups();
        let is_global = matches!(
            class,
            Class::AllKilled | Class::LeaderKilled | Class::CoordinatorDown
        );
        let of_victim = groups.iter().enumerate().filter(|(_, group)| {
            let primary = group.primary.map(|primary| primary.server);
            is_global || primary == Some(ServerId(victim))
        });
        let made = Made {
            victims: if is_global { Vec::new() } else { vec![victim] },
            hit: of_victim
                .map(|(range, group)| Hit::of(range, group))
                .collect(),
            hold: self.hold(class),
        };
        self.inflict(class, victim)?;
        Ok(made)
    }

    /// A server, mostly one with primaries.
    fn victim(&mut self) -> u32 {
        let groups = self.view.last_groups();
        let any = self.dice.below(self.settings.servers.into()) as u32 + 1;
        let at = self.dice.below(groups.len() as u64) as usize;
        let primary = groups.get(at).and_then(|group| group.primary);
        match (self.dice.below(4), primary) {
            (1.., Some(primary)) => primary.server.0,
            _ => any,
        }
    }

    fn hold(&mut self, class: Class) -> Duration {
        let mut between = |low: u64, high: u64| low + self.dice.below(high - low);
        let hold_ms = match class {
            Class::Pause => 3 * self.settings.session.as_millis() as u64,
            Class::Kill | Class::AllKilled => between(0, 3000),
            Class::CoordinatorDown => between(3000, 12_000),
            Class::DiskSlow => between(3000, 6000),
            Class::Clocks | Class::Keyless | Class::Malformed => 1000,
            _ => between(1500, 5000),
        };
        Duration::from_millis(hold_ms)
    }

    fn inflict(&mut self, class: Class, victim: u32) -> Result<(), String> {
        match class {
            Class::Kill => self.cluster.seat_mut(victim)?.process.kill(),
            Class::Pause => self.freeze(victim),
            Class::AllKilled => {
                let mut seats = self.cluster.seats.iter_mut();
                seats.try_for_each(|seat| seat.process.kill())
            }
            Class::Clocks => self.set_clocks(victim),
            Class::DiskFull | Class::DiskSlow | Class::DiskHung => self.hurt_disk(class, victim),
            Class::LeaderKilled => match self.cluster.ensemble.leader() {
                Some(leader) => self.cluster.ensemble.servers[leader]
                    .kill()
                    .map_err(|error| error.to_string()),
                None => Ok(()),
            },
            Class::CoordinatorDown => {
                let mut servers = self.cluster.ensemble.servers.iter_mut();
                servers
                    .try_for_each(|server| server.kill())
                    .map_err(|error| error.to_string())
            }
            Class::Idle | Class::Keyless | Class::Malformed => {
                self.outsiders.come(class, self.cluster, victim)
            }
            Class::CutOneWay
            | Class::CutTwoWay
            | Class::CoordinatorUnheard
            | Class::CoordinatorCut
            | Class::Isolated => self.cut(class, victim),
        }
    }

    fn freeze(&mut self, victim: u32) -> Result<(), String> {
        let groups = self.view.groups().into_iter().enumerate();
        let groups = groups.filter(|(_, group)| {
            let primary = group.primary.map(|primary| primary.server);
            primary == Some(ServerId(victim))
        });
        if let Some(way) = self.outsiders.link_to(self.cluster, victim)? {
            let witness = Witness::new(way, groups.collect());
            self.witnesses.push(witness);
        }
        match self.cluster.seat_mut(victim)? {
            // It may have been killed by the fault before.
            seat if seat.process.is_started() => seat.process.freeze(),
            _ => Ok(()),
        }
    }

    fn hurt_disk(&mut self, class: Class, victim: u32) -> Result<(), String> {
        let bytes_per_s = 32 << 10 << self.dice.below(6);
        let disk = self.cluster.seat_mut(victim)?.disk.as_ref();
        let disk = disk.ok_or("no disk of its own")?;
        match class {
            Class::DiskFull => disk.fill(),
            Class::DiskSlow => disk.slow_down(bytes_per_s),
            _ => disk.freeze(),
        }
    }

    /// One server gets a fast or slow clock, and another the opposite; both are started again, one after the other.
    fn set_clocks(&mut self, victim: u32) -> Result<(), String> {
        let percents = match self.dice.below(2) {
            0 => [80, 120],
            _ => [120, 80],
        };
        let other = victim % self.settings.servers + 1;
        for (server, percent) in [victim, other].into_iter().zip(percents) {
            let seat = self.cluster.seat_mut(server)?;
            seat.clock_percent = percent;
            seat.process.kill()?;
            seat.start()?;
            // What the first one had in memory, the others have; they write it meanwhile.
            std::thread::sleep(Duration::from_secs(3));
        }
        Ok(())
    }

    fn cut(&mut self, class: Class, victim: u32) -> Result<(), String> {
        let own = End::Server(victim);
        let other = (victim + self.dice.below(u64::from(self.settings.servers) - 1) as u32)
            % self.settings.servers
            + 1;
        let others = (1..=self.settings.servers).filter(|server| *server != victim);
        let zookeepers = (1..=self.settings.zookeepers).map(End::ZooKeeper);
        let (ends, is_two_way): (Vec<End>, bool) = match class {
            Class::CutOneWay => (vec![End::Server(other)], false),
            Class::CutTwoWay => (vec![End::Server(other)], true),
            Class::CoordinatorUnheard => (zookeepers.collect(), false),
            Class::CoordinatorCut => (zookeepers.collect(), true),
            _ => (others.map(End::Server).chain(zookeepers).collect(), true),
        };
        let network = self.cluster.network.as_ref().ok_or("no network")?;
        ends.into_iter()
            .try_for_each(|end| cut(network, class, own, end, is_two_way))
    }

    /// Everything works again: nothing is killed, frozen, cut, full or slow. Clocks stay as they are.
    ///
    /// # Errors
    /// What the system says, or a server that did not bear its clients.
    pub fn mend(&mut self) -> Result<(), String> {
        if let Some(network) = &self.cluster.network {
            network.heal()?;
        }
        for seat in &mut self.cluster.seats {
            if let Some(disk) = &seat.disk {
                // It is not frozen, mostly.
                let _ = disk.thaw();
                disk.empty()?;
                disk.speed_up()?;
            }
            seat.process.thaw()?;
            seat.start()?;
        }
        let io = |error: kreon_base::Error| error.to_string();
        for server in &mut self.cluster.ensemble.servers {
            if server.ended().map_err(io)?.is_some() || !server.is_started() {
                server.restart().map_err(io)?;
                self.coordinator_back = Some(Instant::now());
            }
        }
        self.outsiders.leave(self.cluster)
    }
}

fn cut(
    network: &Network,
    class: Class,
    own: End,
    end: End,
    is_two_way: bool,
) -> Result<(), String> {
    if class != Class::CoordinatorUnheard {
        network.cut(own, end)?;
    }
    match is_two_way || class == Class::CoordinatorUnheard {
        true => network.cut(end, own),
        false => Ok(()),
    }
}

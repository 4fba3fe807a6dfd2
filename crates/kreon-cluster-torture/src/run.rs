//! A run: stretches of work under faults, and between them moments of rest, at which all is mended and judged.

use std::time::{Duration, Instant};

use kreon_judge::Call;
use kreon_sim::Dice;

use crate::clients::crowd::{Crowd, work};
use crate::clients::keys::Keys;
use crate::clients::ledger::{Cut, Ledger};
use crate::clients::rest::rest;
use crate::clients::session::Shared;
use crate::cluster::entrance::{Entrance, PATIENT};
use crate::cluster::settings::Settings;
use crate::cluster::view::View;
use crate::cluster::whole::Cluster;
use crate::course::logs::Logs;
use crate::course::longest::Longest;
use crate::faults::act::Actor;
use crate::faults::class::{Class, Deck};
use crate::faults::happened::Happened;
use crate::faults::outsiders::Outsiders;
use crate::figures::Figures;

/// Limits of the calls of clients.
const LIMITS: [Duration; 3] = [Duration::from_millis(1500), Duration::from_secs(4), PATIENT];

/// What stands of a run while it goes on.
pub struct Run<'a> {
    /// Makes the faults.
    pub actor: Actor<'a>,
    /// How clients come in.
    pub entrance: Entrance,
    /// What they share.
    pub shared: Shared,
    /// The histories of the ranges.
    pub ledgers: Vec<Ledger>,
    /// What is told at the end.
    pub figures: Figures,
    /// The longest outages.
    pub longest: Longest,
    logs: Logs,
    crowd: Crowd,
    dice: Dice,
}

impl<'a> Run<'a> {
    /// Starts the servers, and makes the table.
    ///
    /// # Errors
    /// They do not start.
    pub fn begin(
        cluster: &'a mut Cluster,
        view: &'a View,
        settings: &'a Settings,
        crowd: Crowd,
        seed: u64,
    ) -> Result<Self, String> {
        let keys = Keys {
            ranges: settings.groups as usize,
            each: 24,
        };
        cluster.start_all()?;
        let zookeepers = cluster.ensemble.addresses();
        let entrance = Entrance::new(&zookeepers, Settings::CLUSTER, &cluster.key)?;
        let mut dice = Dice::new(seed);
        let actor = Actor {
            cluster,
            view,
            settings,
            dice: Dice::new(dice.roll()),
            outsiders: Outsiders::new(settings, dice.roll()),
            witnesses: Vec::new(),
            coordinator_back: None,
        };
        view.wait_until_whole(Settings::PATIENCE)?;
        entrance.make_table(&keys.splits(), Settings::PATIENCE)?;
        Ok(Self {
            actor,
            entrance,
            shared: Shared::new(keys, settings.clock),
            ledgers: (0..keys.ranges).map(|_| Ledger::default()).collect(),
            figures: Figures::default(),
            longest: Longest::default(),
            logs: Logs::new(&settings.folder, settings.servers),
            crowd,
            dice,
        })
    }

    /// Stretches with faults from `deck` until `until`; at least one.
    ///
    /// # Errors
    /// What must not be.
    pub fn until(
        &mut self,
        until: Instant,
        deck: &mut Deck,
        faults_each: u64,
    ) -> Result<(), String> {
        loop {
            let count = 1 + self.dice.below(faults_each);
            let classes: Vec<Class> = (0..count).filter_map(|_| deck.draw()).collect();
            self.stretch(|run, shared| run.suffer(&classes, deck, shared))?;
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Lets clients work while `meanwhile` runs, mends everything, and judges.
    ///
    /// # Errors
    /// What must not be.
    pub fn stretch(
        &mut self,
        meanwhile: impl FnOnce(&mut Actor<'_>, &Shared) -> Result<Suffered, String>,
    ) -> Result<(), String> {
        let entrance = self.entrance.clone();
        self.crowd.limit = match self.actor.settings.is_patient {
            true => PATIENT,
            false => LIMITS[self.dice.below(3) as usize],
        };
        let enter = |limit| entrance.enter(limit);
        let (actor, shared) = (&mut self.actor, &self.shared);
        let (mut log, suffered) = work(self.crowd, shared, &mut self.dice, &enter, || {
            meanwhile(actor, shared)
        });
        let suffered = suffered?;
        log.calls.extend(suffered.witnessed);
        self.figures.asked_frozen += suffered.asked_frozen;
        self.actor.mend()?;
        let mended = Instant::now();
        self.actor.view.wait_until_whole(Settings::PATIENCE)?;
        let whole_us = mended.elapsed().as_micros() as u64;
        self.figures.whole_us.push(whole_us);
        let ranges = self.shared.keys.ranges;
        let outages = self.figures.add(&log, &suffered.faults, ranges);
        self.longest.add(&outages, &self.logs.read());
        rest(
            &self.shared,
            &mut self.ledgers,
            &enter,
            &mut log,
            suffered.cut,
            Settings::PATIENCE,
        )
    }
}

/// What happened in a stretch.
#[derive(Debug, Default)]
pub struct Suffered {
    /// The faults.
    pub faults: Vec<Happened>,
    /// All servers were killed at its end.
    pub cut: Option<Cut>,
    /// What frozen primaries answered when they went on, with the ranges.
    pub witnessed: Vec<(usize, Call)>,
    /// Questions that frozen primaries answered or refused then.
    pub asked_frozen: u64,
}

impl Actor<'_> {
    /// Faults one after the other, some of them two at a time. All servers killed end the stretch.
    ///
    /// # Errors
    /// What must not be.
    pub fn suffer(
        &mut self,
        classes: &[Class],
        deck: &mut Deck,
        shared: &Shared,
    ) -> Result<Suffered, String> {
        let mut suffered = Suffered::default();
        pass(self.cluster, shared, Duration::from_millis(700))?;
        for class in classes {
            if *class == Class::AllKilled {
                suffered.cut = Some(self.kill_all(shared, &mut suffered.faults)?);
                return Ok(suffered);
            }
            let hold = self.happen(*class, false, shared, &mut suffered.faults)?;
            let second = match class.may_be_first() {
                true => deck.draw_second().filter(|second| second != class),
                false => None,
            };
            if let Some(second) = second {
                pass(self.cluster, shared, hold / 2)?;
                self.happen(second, true, shared, &mut suffered.faults)?;
            }
            pass(self.cluster, shared, hold)?;
            self.mend_before_witnesses(shared, &mut suffered)?;
            let rest = Duration::from_millis(500 + self.dice.below(2500));
            pass(self.cluster, shared, rest)?;
        }
        Ok(suffered)
    }

    /// Makes a fault, maybe on top of another one, and says how long it is to last.
    ///
    /// # Errors
    /// It could not be made, or a server did what it should not.
    pub fn happen(
        &mut self,
        class: Class,
        is_second: bool,
        shared: &Shared,
        faults: &mut Vec<Happened>,
    ) -> Result<Duration, String> {
        let made = self.make(class)?;
        let at_us = shared.now_us();
        println!(
            "  {:>7.1} s: {} {:?}",
            at_us as f64 / 1e6,
            class.name(),
            made.victims
        );
        faults.push(Happened {
            class,
            victims: made.victims,
            hit: made.hit,
            at_us,
            is_second: is_second || self.is_coordinator_fresh(),
        });
        Ok(made.hold)
    }

    /// Mends everything; who waits for a frozen primary asks it just before, and hears it behind that.
    ///
    /// # Errors
    /// What the system says.
    pub fn mend_before_witnesses(
        &mut self,
        shared: &Shared,
        suffered: &mut Suffered,
    ) -> Result<(), String> {
        let mut witnesses = std::mem::take(&mut self.witnesses);
        for witness in &mut witnesses {
            witness.ask(shared);
        }
        // Whoever is asked later knows what is acknowledged meanwhile.
        pass(self.cluster, shared, Duration::from_millis(100))?;
        self.mend()?;
        for witness in witnesses {
            let (calls, refused) = witness.hear(shared);
            suffered.asked_frozen += calls.len() as u64 + refused;
            suffered.witnessed.extend(calls);
        }
        Ok(())
    }

    /// What was acknowledged a second before is not in memory only.
    fn kill_all(&mut self, shared: &Shared, faults: &mut Vec<Happened>) -> Result<Cut, String> {
        let settled = shared.moment();
        pass(self.cluster, shared, Duration::from_secs(1))?;
        let killed = shared.moment();
        let hold = self.happen(Class::AllKilled, false, shared, faults)?;
        pass(self.cluster, shared, hold)?;
        Ok(Cut { settled, killed })
    }
}

/// Waits, and looks whether a server ends by itself or a client sees what is impossible.
///
/// # Errors
/// One does.
pub fn pass(cluster: &mut Cluster, shared: &Shared, time: Duration) -> Result<(), String> {
    let until = Instant::now() + time;
    loop {
        if let Some(text) = cluster.fallen() {
            return Err(text);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || shared.is_over() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

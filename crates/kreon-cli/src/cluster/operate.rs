//! `kreon cluster add-server`, `drain` and `move-group`: groups are moved while clients go on.

use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kreon_client::{Cluster, ErrorKind, GroupConfig, GroupId, Order, ServerId};

use super::moves::{Move, Next, draining, filling};
use super::survey::{Survey, Surveyor};
use crate::failure::{Code, Failure, Result, tell};
use crate::interrupt::Interrupt;
use crate::sink::Sink;

/// How often it is looked whether a step is done.
const EVERY: Duration = Duration::from_millis(200);

/// An order that is not seen to be done for so long is given again.
const AGAIN: Duration = Duration::from_secs(5);

/// Move a share of the copies to a server that was started, as a new one is
///
/// Its share of primaries, too. Clients go on meanwhile. Interrupted, it leaves whole copies where they are; run it again
/// to go on.
#[derive(Debug, Args)]
pub struct AddServer {
    /// The number of the server
    #[arg(value_name = "SERVER")]
    server: u32,
}

/// Move all copies of a server to others, so that it can be taken away
///
/// Clients go on meanwhile. Interrupted, it leaves whole copies where they are; run it again to go on.
#[derive(Debug, Args)]
pub struct Drain {
    /// The number of the server
    #[arg(value_name = "SERVER")]
    server: u32,
}

/// Move one copy of a group from a server to another, or make a server the primary
#[derive(Debug, Args)]
pub struct MoveGroup {
    /// The number of the group
    #[arg(value_name = "GROUP")]
    group: u32,
    /// The server that gives its copy up
    #[arg(long, value_name = "SERVER", requires = "to")]
    from: Option<u32>,
    /// The server that gets it
    #[arg(long, value_name = "SERVER", requires = "from")]
    to: Option<u32>,
    /// The server with a copy that becomes the primary
    #[arg(long, value_name = "SERVER", required_unless_present = "from")]
    primary: Option<u32>,
}

/// What the commands here work with.
pub struct Operation<'a> {
    pub cluster: &'a Cluster,
    pub surveyor: &'a mut Surveyor,
    pub interrupt: &'a Interrupt,
}

impl AddServer {
    pub fn run(&self, mut on: Operation<'_>, out: &mut Sink) -> Result<()> {
        let survey = on.surveyor.look()?;
        let server = ServerId(self.server);
        if !survey.is_live(server) {
            return Err(not_live(server));
        }
        let moves = filling(&survey, server);
        on.carry_out(&moves)?;
        let moved = moves.len();
        Ok(out.line(&format!("{moved} copies moved to server {}", server.0))?)
    }
}

impl Drain {
    pub fn run(&self, mut on: Operation<'_>, out: &mut Sink) -> Result<()> {
        let survey = on.surveyor.look()?;
        let server = ServerId(self.server);
        if !survey.servers.iter().any(|node| node.server == server) {
            return Err(Failure::usage(format!("there is no server {}", server.0)));
        }
        let moves = draining(&survey, server).map_err(|group| {
            Failure::new(
                Code::Unavailable,
                format!(
                    "no server can take the copy of group {}: all that run have one",
                    group.0
                ),
                "start another server, then drain this one",
            )
        })?;
        on.carry_out(&moves)?;
        let moved = moves.len();
        Ok(out.line(&format!(
            "{moved} copies moved, server {} has none",
            server.0
        ))?)
    }
}

impl MoveGroup {
    pub fn run(&self, mut on: Operation<'_>, out: &mut Sink) -> Result<()> {
        let group = GroupId(self.group);
        let survey = on.surveyor.look()?;
        if !survey
            .groups
            .iter()
            .any(|(_, config)| config.group == group)
        {
            return Err(Failure::usage(format!("there is no group {}", group.0)));
        }
        if let (Some(from), Some(to)) = (self.from, self.to) {
            let (from, to) = (ServerId(from), ServerId(to));
            self.check(&survey, from, to)?;
            on.carry_out(&[Move { group, from, to }])?;
        }
        if let Some(primary) = self.primary {
            on.promote(group, ServerId(primary))?;
        }
        Ok(out.line(&format!("group {} moved", group.0))?)
    }

    fn check(&self, survey: &Survey, from: ServerId, to: ServerId) -> Result<()> {
        if from == to {
            return Err(Failure::usage("--from and --to are the same server"));
        }
        if !survey.is_live(to) {
            return Err(not_live(to));
        }
        let mut groups = survey.groups.iter().map(|(_, config)| config);
        let config = groups.find(|config| config.group.0 == self.group);
        match config.is_some_and(|config| config.members.contains(&from)) {
            true => Ok(()),
            false => Err(Failure::usage(format!(
                "server {} has no copy of group {}",
                from.0, self.group
            ))),
        }
    }
}

fn not_live(server: ServerId) -> Failure {
    Failure::usage(format!("server {} does not run", server.0))
        .with_advice("start it by `kreon cluster serve`")
}

impl Operation<'_> {
    /// Carries out moves one after the other: a server takes one copy at a time.
    fn carry_out(&mut self, moves: &[Move]) -> Result<()> {
        let progress = Steps::new(moves.len());
        for (at, one) in moves.iter().enumerate() {
            self.carry_out_one(*one, at + 1, &progress)?;
        }
        Ok(())
    }

    fn carry_out_one(&mut self, one: Move, at: usize, progress: &Steps) -> Result<()> {
        let (mut last, mut since) = (None, Instant::now());
        loop {
            self.interrupt.check()?;
            let groups = self.surveyor.groups()?;
            let config = groups
                .into_iter()
                .find(|(_, config)| config.group == one.group);
            let Some((_, config)) = config else {
                return Err(Failure::usage(format!("there is no group {}", one.group.0)));
            };
            let next = one.next(&config);
            if next == Next::Done {
                return Ok(());
            }
            if last.as_ref() != Some(&next) || since.elapsed() > AGAIN {
                progress.show(at, one.group, &next);
                match next {
                    Next::Promote(first) => self.promote_one(&config, first)?,
                    _ => self.order(one.group, &next)?,
                }
                (last, since) = (Some(next), Instant::now());
            }
            sleep(EVERY);
        }
    }

    /// Has a member promoted: this one, or another one if it is the primary of enough groups.
    fn promote_one(&self, config: &GroupConfig, first: ServerId) -> Result<()> {
        let others = config.in_sync.iter().map(|member| member.server);
        let primary = config.primary.map(|member| member.server);
        let others = others.filter(|server| *server != first && Some(*server) != primary);
        let mut refused = None;
        for server in std::iter::once(first).chain(others) {
            let group = config.group;
            match self.cluster.order(Order::Promote { group, server }) {
                Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                    refused.get_or_insert(error);
                }
                outcome => return passed(outcome),
            }
        }
        refused.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Gives the order that a step needs. That nobody takes it at present is no failure: it is given again.
    fn order(&self, group: GroupId, next: &Next) -> Result<()> {
        let order = match *next {
            Next::Add(server) => Order::AddMember { group, server },
            Next::Promote(server) => Order::Promote { group, server },
            Next::Remove(server) => Order::RemoveMember { group, server },
            Next::Join(_) | Next::NoPrimary | Next::Done => return Ok(()),
        };
        passed(self.cluster.order(order))
    }

    fn promote(&mut self, group: GroupId, server: ServerId) -> Result<()> {
        loop {
            self.interrupt.check()?;
            let groups = self.surveyor.groups()?;
            let config = groups.into_iter().find(|(_, config)| config.group == group);
            let primary = config.and_then(|(_, config)| config.primary);
            if primary.is_some_and(|member| member.server == server) {
                return Ok(());
            }
            self.order(group, &Next::Promote(server))?;
            sleep(EVERY);
        }
    }
}

/// That nobody takes an order at present is no failure: it is given again.
fn passed(outcome: kreon_client::Result<()>) -> Result<()> {
    match outcome {
        Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Busy) => {
            tell(&format!("kreon: {error}; it is tried again"));
            Ok(())
        }
        done => Ok(done?),
    }
}

/// What is being done: a line that changes at a terminal, else a line for each step.
struct Steps {
    bar: ProgressBar,
    all: usize,
}

impl Steps {
    fn new(all: usize) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, all }
    }

    fn show(&self, at: usize, group: GroupId, next: &Next) {
        let what = match next {
            Next::Add(server) => format!("server {} becomes a member", server.0),
            Next::Join(server) => format!("server {} gets its copy", server.0),
            Next::Promote(server) => format!("server {} becomes the primary", server.0),
            Next::NoPrimary => "waits for a primary".to_owned(),
            Next::Remove(server) => format!("the copy of server {} is given up", server.0),
            Next::Done => "done".to_owned(),
        };
        let line = format!("copy {at} of {}: group {}: {what}", self.all, group.0);
        match self.bar.is_hidden() {
            true => tell(&format!("kreon: {line}")),
            false => self.bar.set_message(line),
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

//! Orders of an operator, and how groups stand.

use std::time::{Duration, Instant};

use kreon_wire::{
    Address as Place, Backup, Compared, Control, FailureKind, GroupConfig, GroupId,
    Kind as PacketKind, Member, Order, Reply, Request, ServerId, Standing, Verified,
};

use crate::error::{Error, ErrorKind, Result};
use crate::handle::Handle;
use crate::slot::Answer;

/// How long a master may take to carry out an order.
const ORDER: Duration = Duration::from_secs(60);

/// How long a verification may take.
const VERIFICATION: Duration = Duration::from_secs(24 * 3600);

/// A group, and how it stands at each of its members.
#[derive(Clone, Debug)]
pub struct GroupStatus {
    /// Its configuration.
    pub config: GroupConfig,
    /// What each member says of it; an error for one that says nothing.
    pub standings: Vec<(ServerId, Result<Standing>)>,
    /// How far its backups and joiners are, as its primary sees them; an error if there is none, or it says nothing.
    pub backups: Result<Vec<Backup>>,
}

/// What an answer to an order means.
enum Heard {
    Reply(Answer),
    /// Another server is to be asked, this one if it is known; nothing was done.
    Elsewhere(Option<ServerId>, Error),
    /// No answer: it may have been done.
    Lost(Error),
}

/// Who gives orders.
pub(crate) struct Orders<'a>(pub(crate) &'a Handle);

impl Orders<'_> {
    pub(crate) fn order(&self, order: Order<'_>) -> Result<()> {
        let reply = match order.primary_of() {
            Some(group) => self.order_primary(group, &order)?,
            None => self.order_master(&order)?,
        };
        match reply.reply()? {
            Reply::Done | Reply::Verified(_) | Reply::Compared(_) => Ok(()),
            _ => Err(Error::strange()),
        }
    }

    pub(crate) fn verify(&self, group: GroupId) -> Result<Verified> {
        match self
            .order_primary(group, &Order::Verify { group })?
            .reply()?
        {
            Reply::Verified(verified) => Ok(verified),
            _ => Err(Error::strange()),
        }
    }

    pub(crate) fn compare(&self, group: GroupId) -> Result<Compared> {
        match self
            .order_primary(group, &Order::Compare { group })?
            .reply()?
        {
            Reply::Compared(compared) => Ok(compared),
            _ => Err(Error::strange()),
        }
    }

    fn order_master(&self, order: &Order<'_>) -> Result<Answer> {
        let driver = self.0.driver();
        let body = Request::Order(*order).body();
        let until = Instant::now() + ORDER;
        let (mut named, mut last) = (driver.master(), None);
        loop {
            let servers = driver.state().seats.servers();
            for server in named.take().into_iter().chain(servers) {
                match self.ask_server(server, Place::default(), &body, until) {
                    Heard::Reply(answer) => {
                        driver.set_master(server);
                        return Ok(answer);
                    }
                    Heard::Elsewhere(other, error) => {
                        last = Some(error);
                        if other.is_some() && other != Some(server) {
                            named = other;
                            break;
                        }
                    }
                    Heard::Lost(error) => last = Some(error),
                }
            }
            if Instant::now() >= until {
                let text = last.map_or_else(|| "no server is known".to_owned(), |e| e.to_string());
                let text = format!("no master takes the order; last: {text}");
                return Err(Error::new(ErrorKind::Unavailable, text));
            }
            std::thread::sleep(driver.rest());
            let _ = driver.refresh();
        }
    }

    fn order_primary(&self, group: GroupId, order: &Order<'_>) -> Result<Answer> {
        let driver = self.0.driver();
        let body = Request::Order(*order).body();
        let is_verification = matches!(order, Order::Verify { .. } | Order::Compare { .. });
        let limit = if is_verification { VERIFICATION } else { ORDER };
        let given_up = Instant::now() + ORDER;
        loop {
            driver.refresh()?;
            let config = driver
                .state()
                .groups()
                .find(|config| config.group == group)
                .cloned();
            let Some(config) = config else {
                let text = format!("no group {}", group.0);
                return Err(Error::new(ErrorKind::NotFound, text));
            };
            let place = Place {
                group,
                term: config.term,
                number: 0,
            };
            let heard = match config.primary {
                Some(Member { server, .. }) => {
                    self.ask_server(server, place, &body, Instant::now() + limit)
                }
                None => {
                    let text = format!("group {} has no primary", group.0);
                    Heard::Elsewhere(None, Error::new(ErrorKind::Unavailable, text))
                }
            };
            let error = match heard {
                Heard::Reply(answer) => return Ok(answer),
                Heard::Lost(error) if !is_verification => {
                    return Err(Error::new(ErrorKind::Unknown, error.to_string()));
                }
                Heard::Elsewhere(_, error) | Heard::Lost(error) => error,
            };
            if Instant::now() >= given_up {
                return Err(Error::new(ErrorKind::Unavailable, error.to_string()));
            }
            std::thread::sleep(driver.rest());
        }
    }

    fn ask_server(&self, server: ServerId, to: Place, body: &[u8], until: Instant) -> Heard {
        let driver = self.0.driver();
        let link = match driver.link_to(server) {
            Ok(link) => link,
            Err(error) => return Heard::Elsewhere(None, error),
        };
        let limit = until
            .saturating_duration_since(Instant::now())
            .max(driver.patience());
        let request = PacketKind::Request;
        let begun = driver.begin_on(link, request, to, body.to_vec(), limit);
        let answer = match begun.and_then(|slot| slot.wait()) {
            Ok(answer) => answer,
            Err(error) => return Heard::Lost(error),
        };
        let told = answer.frame().map(|frame| {
            Reply::decode(&frame).map(|reply| match reply {
                Reply::Failed(failure) => {
                    Some((failure.kind, failure.server, Error::from(&failure)))
                }
                _ => None,
            })
        });
        match told {
            Ok(Ok(Some((FailureKind::NotMaster, other, error)))) => {
                Heard::Elsewhere(Some(other).filter(|other| other.0 != 0), error)
            }
            Ok(Ok(Some((kind, _, error)))) if is_passing(kind) => Heard::Elsewhere(None, error),
            Ok(Ok(Some((FailureKind::Unknown, _, error)))) => Heard::Lost(error),
            _ => Heard::Reply(answer),
        }
    }

    pub(crate) fn groups(&self) -> Result<Vec<GroupStatus>> {
        let driver = self.0.driver();
        driver.refresh()?;
        let mut configs: Vec<_> = driver.state().groups().cloned().collect();
        configs.sort_by_key(|config| config.group.0);
        let mut servers: Vec<_> = configs
            .iter()
            .flat_map(|config| config.members.clone())
            .collect();
        servers.sort_unstable();
        servers.dedup();
        let links: Vec<_> = servers
            .iter()
            .map(|server| driver.link_to(*server))
            .collect();
        let begin = |config: &GroupConfig, server: ServerId, kind: PacketKind, body: Vec<u8>| {
            let index = servers
                .binary_search(&server)
                .map_err(|_| Error::strange())?;
            let link = links
                .get(index)
                .cloned()
                .unwrap_or_else(|| Err(Error::strange()))?;
            let to = Place {
                group: config.group,
                term: config.term,
                number: 0,
            };
            driver.begin_on(link, kind, to, body, driver.patience())
        };
        let begin_backups = |config: &GroupConfig| match config.primary {
            Some(primary) => {
                let body = Request::Backups.body();
                begin(config, primary.server, PacketKind::Request, body)
            }
            None => {
                let text = format!("group {} has no primary", config.group.0);
                Err(Error::new(ErrorKind::Unavailable, text))
            }
        };
        let begun = configs.into_iter().map(|config| {
            let slots: Vec<_> = config
                .members
                .iter()
                .map(|server| {
                    let slot = begin(&config, *server, PacketKind::Status, Vec::new());
                    (*server, slot)
                })
                .collect();
            (config, slots)
        });
        let begun: Vec<_> = begun.collect();
        // Last: a server of an earlier version closes the link for it.
        let begun = begun.into_iter().map(|(config, slots)| {
            let backups = begin_backups(&config);
            (config, slots, backups)
        });
        let begun: Vec<_> = begun.collect();
        let statuses = begun
            .into_iter()
            .map(|(config, slots, of_primary)| GroupStatus {
                config,
                backups: of_primary.and_then(|slot| backups(&slot.wait()?)),
                standings: slots
                    .into_iter()
                    .map(|(server, slot)| (server, slot.and_then(|slot| standing(&slot.wait()?))))
                    .collect(),
            });
        Ok(statuses.collect())
    }
}

/// Whether the same server, or another one, may take the order later.
const fn is_passing(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Unavailable | FailureKind::Busy | FailureKind::Moved
    )
}

fn standing(answer: &Answer) -> Result<Standing> {
    match Control::decode(&answer.frame()?).map_err(Error::corrupt)? {
        Control::Standing(standing) => Ok(standing),
        Control::Refused(refused) => {
            let text = format!("the server refuses: {:?}", refused.reason);
            Err(Error::new(ErrorKind::Unavailable, text))
        }
        _ => Err(Error::strange()),
    }
}

fn backups(answer: &Answer) -> Result<Vec<Backup>> {
    match answer.reply()? {
        Reply::Backups(backups) => Ok(backups.iter().collect()),
        _ => Err(Error::strange()),
    }
}

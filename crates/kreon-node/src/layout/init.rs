//! Making a cluster: the nodes of the coordinator that everything else begins with.

use std::collections::BTreeSet;
use std::sync::Arc;

use kreon_base::{Error, Result};
use kreon_coord::{Command, Coordinator, Mode, Operation, Paths, Reply};
use kreon_wire::limits::{CLUSTER_NAME_BYTES_MAX, MEMBERS_MAX, NODE_VERSION};
use kreon_wire::{FormatNode, GroupConfig, GroupId, Member, ProcessId, ServerId, Term};

use super::placement::place;
use crate::settings::PRIMARIES_MAX;
use crate::talk::{Talk, unexpected};

/// Groups for each server, unless told otherwise.
const GROUPS_PER_SERVER: u32 = 5;

/// The start that nobody has: members of a new group are in its set by this one, and come into it by their real ones as
/// after the failure of all of them.
const NO_START: ProcessId = ProcessId([0; 16]);

/// A server of a new cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPlace {
    /// Its number, from 1 on.
    pub server: ServerId,
    /// What fails together with it.
    pub domain: String,
}

/// What a new cluster is to be.
#[derive(Clone, Debug)]
pub struct InitSettings {
    /// Its name: 1 to 64 printable ASCII characters without a slash.
    pub cluster: String,
    /// Its servers. They need not run yet.
    pub servers: Vec<ServerPlace>,
    /// Replicas of each group. Default: 3, or as many as there are servers.
    pub replicas: Option<u8>,
    /// Fewest members in sync for writes. Default: 2 of 3 replicas and more, 1 of fewer.
    pub min_in_sync: Option<u8>,
    /// Groups. Default: 5 for each server; at most 8 for each server but one, so that primaries fit when one is lost.
    pub groups: Option<u32>,
    /// Also what makes each failure stop writes.
    pub force: bool,
}

impl InitSettings {
    /// A cluster of the servers 1 to `servers`, each a failure domain.
    pub fn new(cluster: &str, servers: u32) -> Self {
        let place = |server| ServerPlace {
            server: ServerId(server),
            domain: format!("server-{server}"),
        };
        Self {
            cluster: cluster.to_owned(),
            servers: (1..=servers).map(place).collect(),
            replicas: None,
            min_in_sync: None,
            groups: None,
            force: false,
        }
    }
}

/// What a cluster consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Replicas of each group.
    pub replicas: u8,
    /// Fewest members in sync for writes.
    pub min_in_sync: u8,
    /// The groups with their members, ascending.
    pub groups: Vec<(GroupId, Vec<ServerId>)>,
    /// Members of a group share a failure domain, as there are too few of these.
    pub shares_domains: bool,
}

/// What [`init`] would make.
///
/// # Errors
/// `InvalidArgument`: a name, number or combination that is not allowed; the text says which and why.
pub fn plan(settings: &InitSettings) -> Result<Layout> {
    check_names(settings)?;
    let count = settings.servers.len() as u32;
    let replicas = settings.replicas.unwrap_or(count.min(3) as u8);
    if replicas == 0 || u32::from(replicas) > count || usize::from(replicas) > MEMBERS_MAX {
        let text =
            format!("{replicas} replicas on {count} servers: 1 to as many as servers, at most 16");
        return Err(Error::invalid(text));
    }
    let min_in_sync = settings
        .min_in_sync
        .unwrap_or(if replicas >= 3 { 2 } else { 1 });
    if !(1..=replicas).contains(&min_in_sync) {
        let text =
            format!("at least {min_in_sync} of {replicas} replicas in sync: 1 to {replicas}");
        return Err(Error::invalid(text));
    }
    if replicas > 1 && min_in_sync == replicas && !settings.force {
        let text = format!(
            "with {min_in_sync} of {replicas} replicas in sync, each failure of one server stops writes until a full copy \
             has ended; force it if that is meant"
        );
        return Err(Error::invalid(text));
    }
    let most = PRIMARIES_MAX * count.saturating_sub(1).max(1);
    let groups = settings
        .groups
        .unwrap_or((GROUPS_PER_SERVER * count).min(most));
    if !(1..=most).contains(&groups) {
        let text = format!("{groups} groups on {count} servers: 1 to {most}, 8 for each but one");
        return Err(Error::invalid(text));
    }
    let (groups, shares_domains) = place(&settings.servers, replicas.into(), groups);
    Ok(Layout {
        replicas,
        min_in_sync,
        groups,
        shares_domains,
    })
}

fn check_names(settings: &InitSettings) -> Result<()> {
    let name = &settings.cluster;
    let is_name = |byte: u8| (b'!'..=b'~').contains(&byte) && byte != b'/';
    if !(1..=CLUSTER_NAME_BYTES_MAX).contains(&name.len())
        || !name.bytes().all(is_name)
        || matches!(name.as_str(), "." | "..")
    {
        let text = format!("cluster {name:?}: 1 to 64 printable characters, no slash, no space");
        return Err(Error::invalid(text));
    }
    let numbers: BTreeSet<ServerId> = settings.servers.iter().map(|place| place.server).collect();
    if numbers.is_empty()
        || numbers.contains(&ServerId(0))
        || numbers.len() < settings.servers.len()
    {
        let text = "a cluster has servers, each with a number of its own from 1 on";
        return Err(Error::invalid(text));
    }
    Ok(())
}

/// Makes a cluster, all or nothing: its folders, its format, its groups. Its servers register themselves when they start; a
/// group forms when all its members have.
///
/// # Errors
/// Those of [`plan`]; `InvalidArgument`: there is a cluster of this name; those of [`Talk::call`].
pub fn init(coordinator: &Arc<dyn Coordinator>, settings: &InitSettings) -> Result<Layout> {
    let layout = plan(settings)?;
    let paths = Paths::new(&settings.cluster);
    let mut talk = Talk::new(Arc::clone(coordinator));
    let folder = |path: String| Operation::Create(path, [].into(), Mode::Persistent);
    let mut folders = paths.folders().into_iter();
    // Clusters share the first one.
    if let Some(shared) = folders.next() {
        match talk.call(Command::Create(shared, [].into(), Mode::Persistent))? {
            Reply::Created(_) | Reply::Exists => {}
            other => return Err(unexpected(&other)),
        }
    }
    let mut all: Vec<Operation> = folders.map(folder).collect();
    let format = FormatNode {
        version: NODE_VERSION.into(),
    };
    let format = format.encode().into();
    all.push(Operation::Create(paths.format(), format, Mode::Persistent));
    all.push(folder(paths.master_fence()));
    for (group, members) in &layout.groups {
        let config = first_config(*group, members, layout.min_in_sync);
        config.check()?;
        let path = paths.group(group.0);
        all.push(Operation::Create(
            path,
            config.encode().into(),
            Mode::Persistent,
        ));
    }
    match talk.call(Command::Multi(all))? {
        Reply::Done(_) => Ok(layout),
        Reply::Refused(_, why) if *why == Reply::Exists => {
            let text = format!("there is a cluster {:?} already", settings.cluster);
            Err(Error::invalid(text))
        }
        other => Err(unexpected(&other)),
    }
}

/// A group before its first term: nobody has anything, so nobody may be missing.
fn first_config(group: GroupId, members: &[ServerId], min_in_sync: u8) -> GroupConfig {
    let start = |server: &ServerId| Member {
        server: *server,
        process: NO_START,
    };
    GroupConfig {
        group,
        term: Term(0),
        loss_accepted: false,
        loss_term: Term(0),
        all_needed: true,
        min_in_sync,
        primary: None,
        in_sync: members.iter().map(start).collect(),
        members: members.to_vec(),
        ranges: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use kreon_coord::fake::FakeSession;

    use super::*;

    #[test]
    fn usual_clusters_have_what_the_design_says() {
        for (servers, replicas, min_in_sync, groups) in
            [(1, 1, 1, 5), (2, 2, 1, 8), (3, 3, 2, 15), (5, 3, 2, 25)]
        {
            let layout = plan(&InitSettings::new("c", servers)).unwrap();
            let found = (layout.replicas, layout.min_in_sync, layout.groups.len());
            assert_eq!(found, (replicas, min_in_sync, groups), "{servers} servers");
        }
    }

    #[test]
    fn what_stops_at_each_failure_has_to_be_forced() {
        let settings = InitSettings {
            min_in_sync: Some(2),
            ..InitSettings::new("c", 2)
        };
        assert!(plan(&settings).is_err());
        let forced = InitSettings {
            force: true,
            ..settings
        };
        assert_eq!(plan(&forced).unwrap().min_in_sync, 2);
    }

    #[test]
    fn numbers_outside_their_ranges_are_refused() {
        let usual = || InitSettings::new("c", 3);
        let wrong = [
            InitSettings::new("c", 0),
            InitSettings::new("a/b", 3),
            InitSettings::new("", 3),
            InitSettings {
                groups: Some(17),
                ..usual()
            },
            InitSettings {
                groups: Some(0),
                ..usual()
            },
            InitSettings {
                replicas: Some(4),
                ..usual()
            },
            InitSettings {
                min_in_sync: Some(0),
                ..usual()
            },
        ];
        for settings in wrong {
            assert!(plan(&settings).is_err(), "{settings:?}");
        }
    }

    #[test]
    fn a_cluster_is_made_once_and_its_groups_can_be_read() {
        let session: Arc<dyn Coordinator> = Arc::new(FakeSession::new());
        let settings = InitSettings::new("c", 3);
        let layout = init(&session, &settings).unwrap();
        let paths = Paths::new("c");
        let mut talk = Talk::new(Arc::clone(&session));
        for (group, members) in &layout.groups {
            let node = talk.read(&paths.group(group.0), false).unwrap().unwrap();
            let config = GroupConfig::decode(&node.data).unwrap();
            assert_eq!((&config.members, config.primary), (members, None));
        }
        assert!(init(&session, &settings).is_err());
        init(&session, &InitSettings::new("d", 1)).unwrap();
    }
}

//! What an operator orders.

use crate::codes::codes;
use crate::fields::Fields;
use crate::ids::{GroupId, ServerId, Term};
use crate::limits::{SPLIT_KEY_BYTES_MAX, SPLITS_MAX};
use crate::node::{put_sized, sized};
use crate::operations::table;
use crate::violation::Violation;

codes! {
    /// What is ordered.
    OrderKind {
        /// A table is made.
        CreateTable = 1,
        /// A table is dropped.
        DropTable = 2,
        /// A server becomes a member.
        AddMember = 3,
        /// A server is no member any more.
        RemoveMember = 4,
        /// A member becomes the primary.
        Promote = 5,
        /// The group goes on with what one server has.
        AcceptLoss = 6,
        /// The store of the group is verified.
        Verify = 7,
        /// The primary resigns.
        HandOver = 8,
        /// The copies of the group are compared.
        Compare = 9,
    }
}

/// What an operator orders: of the server that is the master, but [`Verify`](Self::Verify),
/// [`HandOver`](Self::HandOver) and [`Compare`](Self::Compare) of the primary of the group. Each may be given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order<'a> {
    /// Make a table. Done when all groups have their ranges.
    CreateTable {
        /// Its name: 1 to 255 bytes without control characters.
        table: &'a str,
        /// First keys of its ranges but the first, which groups of the master's choice get in turn.
        splits: Splits<'a>,
    },
    /// Drop a table with all that is in it.
    DropTable {
        /// Its name.
        table: &'a str,
    },
    /// Make a server a member of a group; it joins.
    AddMember {
        /// The group.
        group: GroupId,
        /// The server.
        server: ServerId,
    },
    /// Remove a member of a group that is not the primary.
    RemoveMember {
        /// The group.
        group: GroupId,
        /// The server.
        server: ServerId,
    },
    /// Make an in-sync member of a group its primary.
    Promote {
        /// The group.
        group: GroupId,
        /// The server.
        server: ServerId,
    },
    /// Go on with what one server has, and without what others that do not come back may have had.
    AcceptLoss {
        /// The group.
        group: GroupId,
        /// The server whose replica goes on alone.
        server: ServerId,
        /// The operator vouches that a process of the set has ended, and names the highest term that any replica has; not 0.
        vouched: Option<Term>,
    },
    /// Verify the store of the primary.
    Verify {
        /// The group.
        group: GroupId,
    },
    /// Let another member of the set be the primary.
    HandOver {
        /// The group.
        group: GroupId,
    },
    /// Compare the copies of the set with that of the primary, which does it.
    Compare {
        /// The group.
        group: GroupId,
    },
}

/// What an order names, whichever it is.
#[derive(Default)]
struct Named<'a> {
    group: GroupId,
    server: ServerId,
    term: Term,
    table: &'a str,
    splits: Splits<'a>,
}

impl<'a> Order<'a> {
    /// What it is.
    pub const fn kind(&self) -> OrderKind {
        match self {
            Self::CreateTable { .. } => OrderKind::CreateTable,
            Self::DropTable { .. } => OrderKind::DropTable,
            Self::AddMember { .. } => OrderKind::AddMember,
            Self::RemoveMember { .. } => OrderKind::RemoveMember,
            Self::Promote { .. } => OrderKind::Promote,
            Self::AcceptLoss { .. } => OrderKind::AcceptLoss,
            Self::Verify { .. } => OrderKind::Verify,
            Self::HandOver { .. } => OrderKind::HandOver,
            Self::Compare { .. } => OrderKind::Compare,
        }
    }

    /// The group whose primary it is for; `None` for what the master does.
    pub const fn primary_of(&self) -> Option<GroupId> {
        match self {
            Self::Verify { group } | Self::HandOver { group } | Self::Compare { group } => {
                Some(*group)
            }
            _ => None,
        }
    }

    /// What follows the first byte of the body.
    pub(crate) fn read(mut fields: Fields<'a>) -> Result<Self, Violation> {
        let kind = OrderKind::of(fields.u8()?)?;
        let splits = fields.u16()?;
        let group = GroupId(fields.u32()?);
        let server = ServerId(fields.u32()?);
        fields.zeroes::<4>()?;
        let term = Term(fields.u64_upto(Term::MAX.0)?);
        let of_table = matches!(kind, OrderKind::CreateTable | OrderKind::DropTable);
        let order = Self::of(
            kind,
            Named {
                group,
                server,
                term,
                table: if of_table { table(&mut fields)? } else { "" },
                splits: Splits::read(splits, fields)?,
            },
        );
        order.check((group, server, term), splits).map(|()| order)
    }

    const fn of(kind: OrderKind, named: Named<'a>) -> Self {
        let Named {
            group,
            server,
            term,
            table,
            splits,
        } = named;
        match kind {
            OrderKind::CreateTable => Self::CreateTable { table, splits },
            OrderKind::DropTable => Self::DropTable { table },
            OrderKind::AddMember => Self::AddMember { group, server },
            OrderKind::RemoveMember => Self::RemoveMember { group, server },
            OrderKind::Promote => Self::Promote { group, server },
            OrderKind::AcceptLoss => Self::AcceptLoss {
                group,
                server,
                vouched: if term.0 == 0 { None } else { Some(term) },
            },
            OrderKind::Verify => Self::Verify { group },
            OrderKind::HandOver => Self::HandOver { group },
            OrderKind::Compare => Self::Compare { group },
        }
    }

    /// Whether it says all that stood there, and names what it must.
    fn check(&self, said: (GroupId, ServerId, Term), splits: u16) -> Result<(), Violation> {
        let named = self.named();
        let whole = (named.group, named.server, named.term) == said
            && named.splits.len() == usize::from(splits);
        let (has_group, has_server) = (named.group.0 != 0, named.server.0 != 0);
        let fits = match self.kind() {
            OrderKind::CreateTable | OrderKind::DropTable => true,
            OrderKind::Verify | OrderKind::HandOver | OrderKind::Compare => has_group,
            _ => has_group && has_server,
        };
        match whole && fits {
            true => Ok(()),
            false => Err(Violation::FieldValue),
        }
    }

    fn named(&self) -> Named<'a> {
        let none = Named::default();
        match *self {
            Self::CreateTable { table, splits } => Named {
                table,
                splits,
                ..none
            },
            Self::DropTable { table } => Named { table, ..none },
            Self::AddMember { group, server }
            | Self::RemoveMember { group, server }
            | Self::Promote { group, server } => Named {
                group,
                server,
                ..none
            },
            Self::AcceptLoss {
                group,
                server,
                vouched,
            } => Named {
                group,
                server,
                term: vouched.unwrap_or_default(),
                ..none
            },
            Self::Verify { group } | Self::HandOver { group } | Self::Compare { group } => {
                Named { group, ..none }
            }
        }
    }

    /// Everything behind the code of the request.
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        let named = self.named();
        to.push(self.kind() as u8);
        to.extend_from_slice(&(named.splits.len() as u16).to_le_bytes());
        to.extend_from_slice(&named.group.0.to_le_bytes());
        to.extend_from_slice(&u64::from(named.server.0).to_le_bytes());
        to.extend_from_slice(&named.term.0.to_le_bytes());
        if matches!(self.kind(), OrderKind::CreateTable | OrderKind::DropTable) {
            put_sized(to, named.table.as_bytes());
        }
        to.extend_from_slice(named.splits.bytes);
    }
}

/// The first keys of the ranges of a new table but the first: ascending, each 1 to [`SPLIT_KEY_BYTES_MAX`] bytes, up to
/// [`SPLITS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Splits<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> Splits<'a> {
    fn read(count: u16, mut fields: Fields<'a>) -> Result<Self, Violation> {
        if usize::from(count) > SPLITS_MAX {
            return Err(Violation::Count);
        }
        let (bytes, mut before): (_, &[u8]) = (fields.peek(), &[]);
        for _ in 0..count {
            let key = sized(&mut fields, SPLIT_KEY_BYTES_MAX)?;
            if key <= before {
                return Err(Violation::Order);
            }
            before = key;
        }
        fields.end()?;
        Ok(Self { count, bytes })
    }

    /// How many.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the table has one range only.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The keys, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut fields = Fields::of(self.bytes);
        std::iter::from_fn(move || sized(&mut fields, SPLIT_KEY_BYTES_MAX).ok())
    }
}

/// Split keys for an order, while they are collected.
#[derive(Clone, Debug, Default)]
pub struct SplitList {
    count: u16,
    bytes: Vec<u8>,
    last: Vec<u8>,
}

impl SplitList {
    /// None.
    pub const fn new() -> Self {
        Self {
            count: 0,
            bytes: Vec::new(),
            last: Vec::new(),
        }
    }

    /// Adds a key behind all others.
    ///
    /// # Errors
    /// `Count` for a key that is too long and one more than [`SPLITS_MAX`], `Order` for one that is not above the last
    /// or is empty; nothing was added.
    pub fn push(&mut self, key: &[u8]) -> Result<(), Violation> {
        if key.len() > SPLIT_KEY_BYTES_MAX || usize::from(self.count) >= SPLITS_MAX {
            return Err(Violation::Count);
        }
        if key <= &self.last[..] {
            return Err(Violation::Order);
        }
        put_sized(&mut self.bytes, key);
        key.clone_into(&mut self.last);
        self.count += 1;
        Ok(())
    }

    /// The keys so far.
    pub fn splits(&self) -> Splits<'_> {
        Splits {
            count: self.count,
            bytes: &self.bytes,
        }
    }
}

//! An order that is being carried out.

use kreon_wire::{GroupId, Order, ServerId, Term};

use super::running::About;

/// An order, as it was given, with bytes of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// Make a table.
    CreateTable {
        /// Its name.
        table: String,
        /// First keys of its ranges but the first.
        splits: Vec<Vec<u8>>,
    },
    /// Drop a table.
    DropTable(String),
    /// Make a server a member.
    AddMember(GroupId, ServerId),
    /// Remove a member.
    RemoveMember(GroupId, ServerId),
    /// Make a member the primary.
    Promote(GroupId, ServerId),
    /// The replica of a server goes on alone.
    AcceptLoss(GroupId, ServerId, Option<Term>),
    /// The primary resigns.
    HandOver(GroupId),
    /// What desks answer themselves.
    OfDesk,
}

impl Given {
    pub fn of(order: &Order<'_>) -> Self {
        match *order {
            Order::CreateTable { table, splits } => Self::CreateTable {
                table: table.to_owned(),
                splits: splits.iter().map(<[u8]>::to_vec).collect(),
            },
            Order::DropTable { table } => Self::DropTable(table.to_owned()),
            Order::AddMember { group, server } => Self::AddMember(group, server),
            Order::RemoveMember { group, server } => Self::RemoveMember(group, server),
            Order::Promote { group, server } => Self::Promote(group, server),
            Order::AcceptLoss {
                group,
                server,
                vouched,
            } => Self::AcceptLoss(group, server, vouched),
            Order::Verify { .. } | Order::Compare { .. } => Self::OfDesk,
            Order::HandOver { group } => Self::HandOver(group),
        }
    }

    /// What it changes.
    pub fn about(&self) -> About {
        match self {
            Self::CreateTable { table, .. } | Self::DropTable(table) => About::Table(table.clone()),
            Self::AddMember(group, _)
            | Self::RemoveMember(group, _)
            | Self::Promote(group, _)
            | Self::AcceptLoss(group, ..) => About::Group(*group),
            Self::HandOver(_) | Self::OfDesk => About::Nothing,
        }
    }

    /// Bytes that it takes while it waits.
    pub fn len_bytes(&self) -> usize {
        match self {
            Self::CreateTable { table, splits } => {
                table.len() + splits.iter().map(|key| key.len() + 32).sum::<usize>()
            }
            Self::DropTable(table) => table.len(),
            _ => 0,
        }
    }
}

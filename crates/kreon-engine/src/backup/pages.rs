//! Copies the pages of a state: catalogue, bitmap, and every tree from its root on.
//!
//! A pointer says which content its page has, so a page that an earlier backup has under the same pointer is not even
//! read. Index nodes are: what is below them is to be found.

use kreon_base::{Error, PAGE_BYTES, PageBytes, PageNo, RegionId, Result};
use kreon_device::AlignedBuf;
use kreon_format::{
    BackupPage, BackupPlace, IndexNode, Leaf, PagePointer, StoreId, TreeRecord, check_node,
    verify_pointed,
};

use super::data::{DataFile, read_runs};
use super::moment::Moment;
use super::pace::Pace;
use crate::state::Storage;

/// Pages that are read at once.
const ROUND_PAGES: usize = 64;

/// Copies pages and notes where all of the state stand.
pub struct PageCopy<'a, 'd, 'p> {
    pub storage: &'a Storage,
    /// What the backup before has, ascending.
    pub before: &'a [BackupPage],
    pub data: &'a mut DataFile<'d>,
    pub pace: &'a mut Pace<'p>,
    pub pages: Vec<BackupPage>,
}

/// The nodes of one height of one tree.
#[derive(Clone, Copy)]
struct Floor {
    region: RegionId,
    store: StoreId,
    level: u8,
}

impl PageCopy<'_, '_, '_> {
    /// All pages of `moment`.
    ///
    /// # Errors
    /// `Corruption` names the page that does not verify; those of device, target and pace.
    pub fn all(&mut self, moment: &Moment) -> Result<()> {
        for (pointer, bytes) in &moment.bitmap {
            if !self.is_there(pointer)? {
                self.append(pointer, &bytes[..])?;
            }
        }
        self.catalogue(&moment.catalogue_pages)?;
        for region in &moment.catalogue.regions {
            for tree in &region.levels {
                self.tree(region.id, tree, self.storage.store)
                    .map_err(|error| error.within(format!("region {:?}", region.name)))?;
            }
        }
        let parts = moment.catalogue.logs.iter().flat_map(|log| &log.image);
        for (region, tree) in parts.flat_map(|part| &part.trees) {
            self.tree(*region, tree, self.storage.store.of_image())
                .map_err(|error| error.within("image of L0"))?;
        }
        self.pages.sort_unstable_by_key(|page| page.pointer.page);
        let twice = self.pages.windows(2).find_map(|two| match two {
            [one, other] if one.pointer.page == other.pointer.page => Some(one.pointer.page),
            _ => None,
        });
        match twice {
            None => Ok(()),
            Some(page) => Err(Error::corruption(format!("{page} is reached twice"))),
        }
    }

    /// Whether the backup before has just this content; then it is noted.
    fn is_there(&mut self, pointer: &PagePointer) -> Result<bool> {
        let found = self
            .before
            .binary_search_by_key(&pointer.page, |page| page.pointer.page);
        let found = found.ok().and_then(|at| self.before.get(at));
        match found.filter(|page| page.pointer == *pointer) {
            None => Ok(false),
            Some(page) => {
                self.pages.push(*page);
                self.pace.passed(PAGE_BYTES as u64)?;
                Ok(true)
            }
        }
    }

    fn append(&mut self, pointer: &PagePointer, bytes: &[u8]) -> Result<()> {
        let place: BackupPlace = self.data.next();
        self.data.append(bytes)?;
        self.pages.push(BackupPage {
            pointer: *pointer,
            place,
        });
        self.pace.moved(PAGE_BYTES as u64)
    }

    fn catalogue(&mut self, pointers: &[PagePointer]) -> Result<()> {
        for pointer in pointers {
            if !self.is_there(pointer)? {
                let page = kreon_volume::page_io::read_pages(
                    self.storage.device.as_ref(),
                    &[pointer.page],
                )?;
                let page = page.first()?;
                verify_pointed(page, self.storage.store, pointer)
                    .map_err(|error| error.within("catalogue"))?;
                self.append(pointer, page)?;
            }
        }
        Ok(())
    }

    /// One tree, from the root down.
    fn tree(&mut self, region: RegionId, tree: &TreeRecord, store: StoreId) -> Result<()> {
        let Some((root, top)) = tree.root.zip(tree.height.checked_sub(1)) else {
            return Ok(());
        };
        let mut nodes = vec![root];
        for level in (0..=top).rev() {
            let floor = Floor {
                region,
                store,
                level,
            };
            nodes = self.floor(floor, &nodes)?;
        }
        Ok(())
    }

    /// Copies the nodes of a floor; returns those below.
    fn floor(&mut self, floor: Floor, nodes: &[PagePointer]) -> Result<Vec<PagePointer>> {
        let (mut below, mut round) = (Vec::new(), Vec::with_capacity(ROUND_PAGES));
        let mut buffer = AlignedBuf::new(ROUND_PAGES * PAGE_BYTES);
        for (at, pointer) in nodes.iter().enumerate() {
            let is_there = self.is_there(pointer)?;
            if !is_there || floor.level > 0 {
                round.push((*pointer, is_there));
            }
            if round.len() == ROUND_PAGES || at + 1 == nodes.len() {
                self.round(floor, &round, &mut buffer, &mut below)?;
                round.clear();
            }
        }
        Ok(below)
    }

    fn round(
        &mut self,
        floor: Floor,
        round: &[(PagePointer, bool)],
        buffer: &mut AlignedBuf,
        below: &mut Vec<PagePointer>,
    ) -> Result<()> {
        let numbers: Vec<PageNo> = round.iter().map(|(pointer, _)| pointer.page).collect();
        let bytes = buffer
            .get_mut(..round.len() * PAGE_BYTES)
            .unwrap_or_default();
        read_runs(self.storage.device.as_ref(), &numbers, bytes)?;
        for ((pointer, is_there), page) in round.iter().zip(bytes.as_chunks::<PAGE_BYTES>().0) {
            node(floor, pointer, page, below)
                .map_err(|error| error.within(format!("node of level {}", floor.level)))?;
            if !is_there {
                self.append(pointer, page)?;
            }
        }
        Ok(())
    }
}

/// Verifies a node, and adds the nodes below it.
fn node(
    floor: Floor,
    pointer: &PagePointer,
    page: &PageBytes,
    below: &mut Vec<PagePointer>,
) -> Result<()> {
    check_node(page, floor.store, pointer, floor.level)?;
    let region = match floor.level {
        0 => Leaf::open(page)?.region(),
        _ => {
            let index = IndexNode::open(page)?;
            for child in 0..index.len() {
                below.push(index.child(child)?);
            }
            index.region()
        }
    };
    match region == floor.region {
        true => Ok(()),
        false => Err(Error::corruption(format!(
            "{} belongs to {region}",
            pointer.page
        ))),
    }
}

//! An open store or a cluster with what the command line said about it: region, encodings, durability.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kreon::Durability;
#[cfg(test)]
use kreon::Store;

use crate::cluster::connect;
use crate::encoding::Encoding;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::options::{DEFAULT_REGION, Shared, Target};
use crate::place::{Place, Region, open_store};

/// What every command works on.
pub struct Session {
    pub place: Place,
    pub key_encoding: Encoding,
    pub value_encoding: Encoding,
    pub durability: Durability,
    pub interrupt: Interrupt,
    path: PathBuf,
    /// The region that commands mean; the shell changes it.
    region_name: RefCell<String>,
}

/// How a command opens the store.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Where there is none it is made.
    pub creates_store: bool,
    /// Also over something that is not empty.
    pub formats_store: bool,
    /// Nothing is written: others may read beside, and a file that can be read suffices.
    pub reads_only: bool,
    /// Memory budget if none is given, in bytes. It is all taken when the store is opened (about 1 ms for
    /// each MiB where pages are small), so a command that touches little takes little.
    pub memory_bytes_default: usize,
    /// Signals end the command in order.
    pub takes_signals: bool,
}

impl Session {
    /// Opens the store for a command.
    pub fn open(shared: &Shared, opening: Opening) -> Result<Self> {
        // Before the opening, which may take long: an import must not miss a signal.
        let interrupt = match opening.takes_signals {
            true => Interrupt::on_signals()?,
            false => Interrupt::default(),
        };
        let (place, path) = match shared.target()? {
            Target::Store(path) => (open_store(shared, opening, &path)?, path),
            Target::Cluster(_) if opening.formats_store => {
                return Err(Failure::usage(
                    "--format-store is for stores, not for clusters",
                ));
            }
            Target::Cluster(url) => {
                let cluster = connect(&url, shared.key_file().as_deref())?;
                (Place::Cluster(cluster), PathBuf::from(url))
            }
        };
        let region = shared.region.region.as_deref();
        Ok(Self {
            place,
            key_encoding: shared.key_encoding().unwrap_or(Encoding::Text),
            value_encoding: shared.value_encoding().unwrap_or(Encoding::Text),
            durability: shared.durability(),
            interrupt,
            path,
            region_name: RefCell::new(region.unwrap_or(DEFAULT_REGION).to_owned()),
        })
    }

    /// A session on an open store, with everything else as by default.
    #[cfg(test)]
    pub fn over(store: Store, region: &str, interrupt: Interrupt) -> Self {
        Self {
            place: Place::Store(store),
            key_encoding: Encoding::Text,
            value_encoding: Encoding::Text,
            durability: Durability::Buffered,
            interrupt,
            path: PathBuf::new(),
            region_name: RefCell::new(region.to_owned()),
        }
    }

    /// The same store for one line of the shell, which may have options of its own.
    #[must_use]
    pub fn for_line(&self, given: &Shared) -> Self {
        let region_name = given.region.region.clone();
        let durability = match given.durability() {
            Durability::Buffered => self.durability,
            sync => sync,
        };
        Self {
            place: self.place.clone(),
            key_encoding: given.key_encoding().unwrap_or(self.key_encoding),
            value_encoding: given.value_encoding().unwrap_or(self.value_encoding),
            durability,
            interrupt: self.interrupt.clone(),
            path: self.path.clone(),
            region_name: RefCell::new(region_name.unwrap_or_else(|| self.region_name())),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn region_name(&self) -> String {
        self.region_name.borrow().clone()
    }

    /// Whether it is another one than commands work in if none is named.
    pub fn names_region(&self) -> bool {
        *self.region_name.borrow() != DEFAULT_REGION
    }

    pub fn set_region_name(&self, name: &str) {
        *self.region_name.borrow_mut() = name.to_owned();
    }

    /// The region to read from or delete in: it must be there.
    pub fn existing_region(&self) -> Result<Region> {
        self.place.existing_region(&self.region_name.borrow())
    }

    /// The region to write to: made if it is not there.
    pub fn region(&self) -> Result<Region> {
        self.place.region(&self.region_name.borrow())
    }

    /// The key that an argument stands for.
    pub fn key(&self, argument: &OsStr) -> Result<Vec<u8>> {
        decode(self.key_encoding, argument, "key")
    }

    /// The value that an argument stands for.
    pub fn value(&self, argument: &OsStr) -> Result<Vec<u8>> {
        decode(self.value_encoding, argument, "value")
    }

    /// Makes what was written durable and gives the place free.
    pub fn close(self) -> Result<()> {
        self.place.close()
    }
}

fn decode(encoding: Encoding, argument: &OsStr, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    encoding
        .decode_into(argument.as_bytes(), &mut bytes)
        .map_err(|reason| Failure::usage(format!("the {what} is {reason}")))?;
    Ok(bytes)
}

//! The files of one group on a server: one, and during a resync a second one.
//!
//! A joiner writes a second file beside the one that it has, as that may be the last copy there is. Of several files the one
//! with the higher (incarnation, epoch) counts; one without superblocks never does. The others go when the server has seen
//! itself in the set ([`GroupFiles::settle`]).
//!
//! Names are `BASE.GENERATION`, each new file with the next generation. A file gets its name only when it has no superblock,
//! durably: until then it is called `BASE.GENERATION.new`, which is no file of the group.

mod folder;
mod group_files;
#[cfg(test)]
mod tests;

pub use self::folder::{Directory, Folder};
pub use self::group_files::{Begun, GroupFile, GroupFiles};

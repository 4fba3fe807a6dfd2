//! The image of the index: what a recovery would find, written at a clean close, so that the next opening reads only that.
//!
//! It lies behind the end of the extents in use, where everything else takes what it finds for nothing. So the end is set
//! back to that place first, durably; then the image becomes durable, and then the superblock that names it. A power cut
//! in between leaves a store without an image.
//!
//! - `write`: several threads write, each a partition at a time; blocks are numbered as they come
//! - `read`: several threads read, each the blocks of its partitions

mod read;
mod write;

pub use self::read::by_image;
pub use self::write::{ImageWriter, write_last};
use crate::format::{ExtentNo, ImagePlace, State, Superblock};

/// The place of the image, if there is one: behind the end of the extents.
pub fn image_of(superblock: &Superblock) -> Option<ImagePlace> {
    let start = ExtentNo(superblock.extents_end).offset();
    let is_clean = superblock.state == State::Clean;
    superblock
        .image
        .filter(|place| is_clean && place.offset == start)
}

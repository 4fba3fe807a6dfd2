//! Encodings of all structures that Kreon stores on a volume.
//!
//! No I/O and no state. `decode` and all accessors return an error for damaged bytes; none panics, whatever the bytes
//! are. Integers are little endian. Each checksum is CRC-32C over the store id, the address of the structure and all
//! its bytes (padding included, the checksum field as zero), so that an intact block in the wrong place or of another
//! store does not verify.
#![forbid(unsafe_code)]

mod attributes;
mod backup;
mod bitmap;
mod bytes;
mod catalogue;
mod catalogue_codec;
mod catalogue_log;
mod catalogue_page;
mod claim;
mod creation;
mod draft_run;
mod entry_code;
mod filter;
mod fragment;
mod heads;
mod index;
mod index_builder;
mod leaf;
mod leaf_builder;
mod leaf_entry;
mod log_segment;
mod made_value;
mod node;
mod node_check;
mod node_draft;
mod pad;
mod pivot;
mod pointer;
mod range_end;
mod region_options;
mod sealed;
mod superblock;

pub use attributes::{decode_attributes, encode_attributes};
pub use backup::{
    BACKUP_PAGE_BYTES, BACKUP_PIECE_BYTES, BackupManifest, BackupPage, BackupPiece, BackupPlace,
    verify_pointed,
};
pub use bitmap::{
    BitmapBlock, GROUP_HEAD_PAGES, GROUP_SEGMENTS, SegmentKind, SegmentRecord, bitmap_page,
    group_first_segment, group_of, groups_of, slot_in_group,
};
pub use catalogue::{
    Catalogue, GroupPointer, ImagePart, LogRecord, LogResume, OpenSegment, PageRun, RegionRecord,
    TREE_LEVELS_MAX, TreeRecord, pages_of,
};
pub use catalogue_codec::{decode_region_page, encode_region_pages};
pub use catalogue_page::{CATALOGUE_PAGE_PAYLOAD_BYTES, decode_page, encode_chain, pages_needed};
pub use claim::{
    FragmentClaim, NodeClaim, claimed_catalogue_page, claimed_fragment, claimed_node,
    claimed_store, trace_of,
};
pub use creation::{CREATION_PAGE, CreationMark};
pub use filter::{FILTER_BITS_PER_KEY_MAX, FilterBuilder, LeafFilter};
pub use fragment::{
    FRAGMENT_HEADER_BYTES, Fragment, FragmentHeader, FragmentSeal, RECORD_ALIGN_BYTES, RecordKind,
    fragment_bytes, fragment_extent, fragment_start, incarnation_mark,
};
pub use index::{IndexNode, Route};
pub use index_builder::IndexBuilder;
pub use leaf::{Leaf, LeafEntry, LeafSearch};
pub use leaf_builder::LeafBuilder;
pub use log_segment::{
    LOG_HEADER_BYTES, LOG_PAYLOAD_BYTES, LOG_SEQUENCE_MAX, LogSegmentHeader, MOVED_SEQUENCE_MIN,
    lsn_at, place_of,
};
pub use made_value::{DROPPED_VALUE_BYTES, MADE_VALUE_BYTES_MAX, made_value, read_made_value};
pub use node::{INLINE_VALUE_BYTES_MAX, LONG_KEY_STORED_BYTES, NODE_HEADER_BYTES, NodeIdentity};
pub use node_check::check_node;
pub use pad::{PAD_BYTES_MIN, encode_pad};
pub use pivot::{Pivot, separator};
pub use pointer::{
    EPOCH_MAX, LOG_OFFSET_MAX, PAGE_NO_MAX, PAGE_POINTER_BYTES, PagePointer, StoreId,
    VOLUME_SEGMENTS_MAX,
};
pub use range_end::{RANGE_END_BYTES_MAX, RANGE_VALUE_BYTES_MAX, range_end, range_value};
pub use region_options::{REGION_OPTIONS_BYTES, decode_region_options, encode_region_options};
pub use sealed::{FORMAT_VERSION, FORMAT_VERSION_MIN};
pub use superblock::{INCARNATION_MAX, SUPERBLOCK_PAGES, Superblock, SuperblockSlot};

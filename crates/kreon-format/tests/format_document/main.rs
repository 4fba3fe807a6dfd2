//! The layouts in `docs/format.md` and its parts equal those that the encoders write.
//!
//! Each structure is assembled from the tables of the document and compared with the bytes of its encoder, so a number
//! that changes only in the document or only in the code fails here. Values fill all bytes of their fields, so a field
//! of another width shows.
#![allow(missing_docs)]

mod backup;
mod catalogue;
mod document;
mod log;
mod nodes;
mod pages;
mod sizes;
mod values;

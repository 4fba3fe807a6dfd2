//! The layout that `docs/format.md` and its parts draw is the one that the encoders write.
//!
//! Each structure is put together from the tables of the document and compared with the bytes of its encoder, so a
//! number that changes in the document or in the code fails here. Values fill all bytes of their fields: a field of
//! another width shows.
#![allow(missing_docs)]

mod catalogue;
mod document;
mod log;
mod nodes;
mod pages;
mod sizes;
mod values;

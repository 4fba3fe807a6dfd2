//! The status page, metrics and their figures over HTTP.

mod figures;
mod http;
mod samples;

pub(crate) use http::Pages;
pub(crate) use samples::take_samples;

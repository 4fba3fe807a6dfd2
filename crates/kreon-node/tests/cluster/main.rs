//! Whole servers in one process, with a coordinator in it, and clients that speak in bare messages.

mod clients;
mod comparing;
mod house;
mod leaving;
mod losing;
mod operating;
mod raw;
mod serving;

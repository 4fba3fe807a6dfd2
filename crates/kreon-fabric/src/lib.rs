//! How servers reach each other: a trait of links that carry packets in order, one implementation over TCP
//! and one that is simulated.
#![forbid(unsafe_code)]

//! Which addresses may be used.

use std::net::{IpAddr, SocketAddr};

use kreon_base::{Error, Result};

use crate::address::Address;

/// The socket address that `at` means, if it may be used with or without a key. IPv4 in IPv6 is IPv4.
pub(super) fn usable(at: &Address, has_key: bool) -> Result<SocketAddr> {
    let text = at.as_str();
    let parsed: SocketAddr = text.parse().map_err(|_| {
        let what = "not an IP address and a port, as in 10.0.0.7:7400 or [::1]:7400";
        Error::invalid(format!("address {text:?}: {what}"))
    })?;
    match has_key || is_loopback(parsed.ip()) {
        true => Ok(parsed),
        false => Err(Error::invalid(format!(
            "address {text}: without a key only loopback addresses are used"
        ))),
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_key_only_loopback_is_usable() {
        for (text, is_usable) in [
            ("127.0.0.1:7400", true),
            ("127.9.9.9:0", true),
            ("[::1]:7400", true),
            ("[::ffff:127.0.0.1]:7400", true),
            ("0.0.0.0:7400", false),
            ("[::]:7400", false),
            ("10.0.0.7:7400", false),
            ("[::ffff:10.0.0.7]:7400", false),
        ] {
            let at = Address::new(text);
            assert_eq!(usable(&at, false).is_ok(), is_usable, "{text}");
            assert!(usable(&at, true).is_ok(), "{text}");
        }
    }

    #[test]
    fn names_are_not_looked_up() {
        for text in ["localhost:7400", "127.0.0.1", "", "7400", "h1:7400"] {
            let error = usable(&Address::new(text), true).unwrap_err();
            assert_eq!(error.kind(), kreon_base::ErrorKind::InvalidArgument);
        }
    }
}

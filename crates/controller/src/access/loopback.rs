//! Names of this machine. A page that anyone's browser shows may give its own name the address 127.0.0.1 and then ask
//! whatever listens there (DNS rebinding); the header `host` still has the page's name.

use std::net::IpAddr;

/// Whether a host, as a URL or the header `host` has it with or without a port, is a name that only this machine has for
/// itself.
pub fn is_loopback(host: &str) -> bool {
    let of_address = |name: &str| name.parse::<IpAddr>().map(|address| address.to_canonical().is_loopback());
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(name, _)| of_address(name) == Ok(true));
    }
    let name = host.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    // Resolvers give `localhost`, and what ends in it, no other address (RFC 6761 section 6.3).
    of_address(&name).unwrap_or(name == "localhost" || name.ends_with(".localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_loopback_if_no_one_else_can_have_it() {
        let own =
            ["localhost", "LocalHost:80", "a.localhost.:1", "127.0.0.1:7600", "127.9.9.9", "[::1]:7600"];
        for host in own.into_iter().chain(["[::1]", "[::ffff:127.0.0.1]:1"]) {
            assert!(is_loopback(host), "{host}");
        }
        let others =
            ["", "evil.example", "localhost.evil.example:7600", "127.0.0.1.evil.example", "10.0.0.1"];
        for host in others.into_iter().chain([
            "[::2]:1",
            "notlocalhost",
            "0.0.0.0:7600",
            ":7600",
            "[localhost",
            "[localhost]",
        ]) {
            assert!(!is_loopback(host), "{host}");
        }
    }
}

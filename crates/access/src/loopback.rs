//! Loopback host names, as a protection against DNS rebinding. A web page may resolve its own name to 127.0.0.1 and
//! send requests to local services; the `host` header then still has the page's name.

use std::net::IpAddr;

/// True if a host is a name that always means this machine. The host may be from a URL or from the `host` header, with
/// or without a port.
pub fn is_loopback(host: &str) -> bool {
    let is_loopback_address =
        |name: &str| name.parse::<IpAddr>().map(|address| address.to_canonical().is_loopback());
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').is_some_and(|(name, _)| is_loopback_address(name) == Ok(true));
    }
    let name = host.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    // Resolvers always give `localhost`, and names below it, a loopback address (RFC 6761 section 6.3).
    is_loopback_address(&name).unwrap_or(name == "localhost" || name.ends_with(".localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
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

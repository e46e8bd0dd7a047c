//! Services: programs that listen at ports, and programs that run at addresses.

use std::net::IpAddr;

use super::{Mapping, PlaceId, Prefixes};

/// Services of a mapping, to look up the service of an endpoint.
///
/// The first service of the mapping with the endpoint's port decides; a service with addresses also needs the
/// endpoint's address. Without such a service, the service without ports at the endpoint's address decides. Otherwise
/// the endpoint is a client of the other endpoint and has the place `others`, provided that the other endpoint belongs
/// to a service.
pub struct Services {
    all: Vec<Service>,
    /// Services with each port, by index in `all`.
    by_port: Vec<Vec<u32>>,
    /// Services without ports, by index in `all`.
    any_port: Vec<u32>,
    others: PlaceId,
}

struct Service {
    place: PlaceId,
    at: Option<Prefixes<()>>,
}

impl Services {
    pub fn new(mapping: &Mapping, mut number: impl FnMut(&str) -> PlaceId) -> Services {
        let mut by_port = vec![Vec::new(); 1 << 16];
        let (mut all, mut any_port) = (Vec::new(), Vec::new());
        for service in mapping.services() {
            let id = all.len() as u32;
            for range in &service.ports {
                for port in range.clone() {
                    by_port[usize::from(port)].push(id);
                }
            }
            if service.ports.is_empty() {
                any_port.push(id);
            }
            let at = service.at.as_ref().map(|at| {
                let mut prefixes = Prefixes::default();
                for &prefix in at {
                    prefixes.insert(prefix, ());
                }
                prefixes
            });
            all.push(Service { place: number(&service.name), at });
        }
        Services { all, by_port, any_port, others: number(super::OTHERS) }
    }

    pub fn of(
        &self,
        ends: (IpAddr, IpAddr),
        ports: Option<(u16, u16)>,
    ) -> (Option<PlaceId>, Option<PlaceId>) {
        let found = (
            self.service(ends.0, ports.map(|ports| ports.0)),
            self.service(ends.1, ports.map(|ports| ports.1)),
        );
        match found {
            (None, None) => found,
            (source, destination) => (source.or(Some(self.others)), destination.or(Some(self.others))),
        }
    }

    fn service(&self, address: IpAddr, port: Option<u16>) -> Option<PlaceId> {
        let here = |id: &&u32| {
            let at = self.all[**id as usize].at.as_ref();
            at.is_none_or(|at| at.find(address).is_some())
        };
        let of_port = port.and_then(|port| self.by_port[usize::from(port)].iter().find(here));
        let id = of_port.or_else(|| self.any_port.iter().find(here))?;
        Some(self.all[*id as usize].place)
    }
}

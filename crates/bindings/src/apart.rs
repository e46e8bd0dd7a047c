//! Tasks that are apart, for single decisions.

use leeward_engine::Engine;
use leeward_fabric::input::{InputError, excerpt};
use leeward_placement::Apart;
use leeward_placement::tasks::AppRequest;

/// Level of a text.
///
/// # Errors
/// The text is no level.
pub fn level(text: Option<&str>) -> Result<Option<Apart>, InputError> {
    match text {
        None => Ok(None),
        Some("host") => Ok(Some(Apart::Host)),
        Some("rack") => Ok(Some(Apart::Rack)),
        Some(other) => {
            let message = format!("`{}`: expected `host` or `rack`", excerpt(other));
            Err(InputError::new("request", message).in_field("apart"))
        }
    }
}

/// The request without the hosts, or racks, of the job's earlier tasks, if its tasks are apart.
pub fn from_earlier_tasks(engine: &Engine, mut request: AppRequest) -> AppRequest {
    let constraints = &mut request.constraints;
    let hosts = engine.pool().hosts_of(request.job).iter().map(|&(host, _)| host);
    match constraints.apart {
        None => {}
        Some(Apart::Host) => constraints.occupied_hosts.extend(hosts),
        Some(Apart::Rack) => {
            let fabric = engine.pool().fabric();
            constraints.occupied_racks.extend(hosts.map(|host| fabric.rack_of(host)));
        }
    }
    constraints.sort();
    request
}

//! Tokens that are bound to hosts which the cluster does not have: what is reported with them is refused, and most often a
//! name is mistyped.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::access::{Access, Tokens};
use crate::desk::World;
use crate::office::Office;

/// How often tokens and cluster are looked at.
const TICK: Duration = Duration::from_secs(1);
/// Hosts that are told by name: all hosts of a cluster may have other names than those of tokens.
const NAMED: usize = 10;

/// Of which tokens and which version of the cluster it was told last.
type Told = Option<(Arc<Tokens>, u64)>;

/// Writes down the hosts that tokens are bound to and the cluster does not have, when the service starts and whenever tokens
/// or the cluster are others.
pub async fn watch_tokens(access: &Access, office: &Office) -> Infallible {
    let mut told = None;
    loop {
        look(&mut told, access.tokens(), &office.last_world());
        tokio::time::sleep(TICK).await;
    }
}

fn look(told: &mut Told, tokens: Option<Arc<Tokens>>, world: &World) {
    let Some(tokens) = tokens else { return };
    let is_told =
        |(known, version): &(Arc<Tokens>, u64)| Arc::ptr_eq(known, &tokens) && *version == world.version;
    if told.as_ref().is_some_and(is_told) {
        return;
    }
    let mut strange = tokens.bound().filter(|(_, host)| world.fabric.host(host).is_none());
    for (name, host) in strange.by_ref().take(NAMED) {
        tracing::warn!(name, host, "a token is bound to a host that the cluster does not have");
    }
    let more = strange.count();
    if more > 0 {
        tracing::warn!(more, "tokens are bound to other hosts that the cluster does not have");
    }
    *told = Some((tokens, world.version));
}

//! The test for hot links, from which tasks move.

use leeward_fabric::{Load, Nanos, ResourceId};
use leeward_ledger::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Test for links from which tasks move. The threshold is a setting of the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotTest {
    /// Load that must exceed the threshold.
    pub load: HotLoad,
    /// Number of consecutive hot windows, at least 1.
    pub windows: u32,
}

/// Load of a link that the test compares with the threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HotLoad {
    /// The estimate, a moving average of the windows. A link is hot only if its last window was hot too.
    #[default]
    Estimate,
    /// The mean of the last window alone, as Hotspots section 3.1 defines a hot link.
    Window,
}

impl Default for HotTest {
    fn default() -> Self {
        HotTest { load: HotLoad::Estimate, windows: 1 }
    }
}

impl HotTest {
    /// True if tasks should move from a link, with the changes of load in the view.
    pub fn is_hot(self, view: &View<'_>, link: ResourceId) -> bool {
        let needed = view.interval().0.saturating_mul(u64::from(self.windows));
        // Windows of agents differ a little in length.
        let lasted =
            |time: Nanos| self.windows <= 1 || time.0.saturating_add(view.interval().0 / 2) >= needed;
        view.hot_for(link).is_some_and(lasted) && self.exceeds(view, link)
    }

    /// True if the load of a link exceeds the threshold.
    pub fn exceeds(self, view: &View<'_>, link: ResourceId) -> bool {
        self.utilization(view, link).is_some_and(|load| load > view.hot_above())
    }

    /// Utilization of a link; `None` where its load is unknown.
    pub fn utilization(self, view: &View<'_>, link: ResourceId) -> Option<f64> {
        match self.load {
            HotLoad::Estimate => view.utilization_with(link, Load(0)),
            HotLoad::Window => view.window_utilization(link),
        }
    }

    /// Utilization of a link at the destination of a task. A link that became busy in its last window counts with it.
    pub fn destination_utilization(self, view: &View<'_>, link: ResourceId) -> Option<f64> {
        let estimate = view.utilization_with(link, Load(0))?;
        Some(match self.load {
            HotLoad::Estimate => estimate,
            HotLoad::Window => estimate.max(view.window_utilization(link)?),
        })
    }
}

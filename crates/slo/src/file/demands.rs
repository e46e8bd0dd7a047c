//! Demand of a workload at each stage: from a trace, or from curves and models in files.

use leeward_calculus::ArrivalCurve;
use leeward_calculus::mmpp::Mmpp;
use leeward_fabric::input::InputError;
use leeward_models::StageInput;
use leeward_traces::Stage;

use super::read::{Curves, Draft, Reader};
use super::traces::Trace;
use crate::Demand;

impl Reader<'_> {
    /// Demands from curves, and from models if there are any.
    pub fn demands(&mut self, draft: &Draft<'_>, curves: &Curves) -> Result<Vec<Demand>, InputError> {
        let Curves { inputs, unloaded, outstanding } = curves;
        let all = || inputs.iter().map(|input| input.stage).collect();
        let stages: Vec<Stage> = draft.stages.clone().unwrap_or_else(all);
        let mut demands = Vec::with_capacity(stages.len());
        for stage in stages {
            let place = (draft.number, draft.item);
            let input = inputs.iter().find(|input| input.stage == stage);
            let Some(StageInput { curve: Some((arrivals, largest)), model, .. }) = input else {
                return Err(self.invalid(
                    place,
                    "stages",
                    format!("{stage}: no curve is given for this stage"),
                ));
            };
            let is_zero = |curve: &ArrivalCurve| curve.burst() == 0.0 && curve.rate() == 0.0;
            if is_zero(arrivals) || model.as_ref().is_some_and(|model: &Mmpp| model.mean() == 0.0) {
                let message = format!("{stage}: no work at all: leave this stage out");
                return Err(self.invalid(place, "curves", message));
            }
            let unloaded = match (stage, *unloaded) {
                (Stage::Storage, None) => {
                    self.note(
                        draft,
                        "the latency without queueing is unknown and counts as 0; `unloaded` sets it",
                    );
                    0.0
                }
                (Stage::Storage, Some(seconds)) => seconds,
                _ => 0.0,
            };
            let (arrivals, largest, model) = (arrivals.clone(), *largest, model.clone());
            let outstanding = (stage == Stage::Storage).then_some(*outstanding).flatten();
            demands.push(Demand { stage, arrivals, largest, model, unloaded, outstanding });
        }
        Ok(demands)
    }

    /// Demands from a trace.
    pub fn trace_demands(
        &mut self,
        draft: &Draft<'_>,
        trace: &mut Trace<'_>,
        device: Option<usize>,
    ) -> Result<Vec<Demand>, InputError> {
        let stages = draft.stages.clone().unwrap_or_else(|| Stage::ALL.to_vec());
        let mut demands = Vec::with_capacity(stages.len());
        for stage in stages {
            let device = device.map(|number| (number, self.devices[number].1.as_ref()));
            let at_stage = trace.at(stage, device)?;
            let (mut unloaded, mut outstanding) = (0.0, None);
            if let (Stage::Storage, Some((_, device))) = (stage, device) {
                outstanding = device.outstanding.requests();
                let percentile = draft.slo.map(|slo| slo.percentile).or(self.highest);
                let stated = draft.item.value.unloaded.map(|time| time.as_secs_f64());
                let profiled = percentile.filter(|_| stated.is_none());
                let tail = profiled.map(|percentile| trace.tail(device, percentile)).transpose();
                let tail =
                    tail.map_err(|error| self.invalid((draft.number, draft.item), "slo.percentile", error))?;
                match stated.or(tail.flatten()) {
                    Some(seconds) => unloaded = seconds,
                    None if percentile.is_some() => {
                        self.note(
                            draft,
                            "the device file has no latencies without queueing: they count as 0",
                        );
                    }
                    None => {}
                }
            }
            demands.push(Demand {
                stage,
                arrivals: at_stage.curve,
                largest: at_stage.largest,
                model: Some(at_stage.model),
                unloaded,
                outstanding,
            });
        }
        Ok(demands)
    }

    fn note(&mut self, draft: &Draft<'_>, note: &str) {
        self.notes.insert(format!("{}: {note}", draft.item.value.name));
    }
}

//! Extension module `leeward._native`: the Rust crates for Python.
//!
//! Each file wraps one concern and only converts between Python values and the crates' types. Tables are passed as
//! Arrow, without copies if their types allow it. Users import the Python package around this module, which has the
//! documentation and types.

#[cfg(feature = "service")]
mod agent;
#[cfg(not(target_os = "linux"))]
compile_error!("Leeward runs on Linux only");

mod absent;
mod apart;
mod app_records;
mod arrow_table;
#[cfg(feature = "capture")]
mod capture;
mod cells;
mod circuits;
mod cluster;
mod cluster_tables;
mod coflow_records;
mod columns;
mod contention;
mod describe;
mod documents;
#[cfg(feature = "service")]
mod enforce;
mod errors;
mod experiment_records;
mod experiments;
mod flows;
mod fluid;
mod lab;
mod link_rows;
mod names;
#[cfg(feature = "service")]
mod nfs;
mod objects;
mod operations;
mod packets;
mod place;
mod policy;
mod probe;
mod probe_evaluation;
mod records;
mod reevaluate;
mod registries;
mod scheduler;
mod schema;
#[cfg(feature = "service")]
mod serve;
mod session;
#[cfg(feature = "service")]
mod simulated_clock;
mod simulation;
mod slo;
mod slo_check;
mod slo_pack;
mod tables;
mod tasks;
mod trace_records;
mod traces;

/// Decisions often allocate small blocks. Python's own objects do not use this allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Extension module; its types are declared in `_native.pyi`.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[cfg(feature = "service")]
    #[pymodule_export]
    use crate::agent::run_agent;
    #[cfg(feature = "capture")]
    #[pymodule_export]
    use crate::capture::read_capture;
    #[pymodule_export]
    use crate::cells::{CellsRuns, CellsScenario};
    #[pymodule_export]
    use crate::circuits::{check_demand, evaluate_circuits, read_days, read_demand, schedule_circuits};
    #[pymodule_export]
    use crate::cluster::Cluster;
    #[pymodule_export]
    use crate::contention::{published_workloads, simulate_contention};
    #[pymodule_export]
    use crate::describe::{bytes_text, rate_text, seconds};
    #[cfg(feature = "service")]
    #[pymodule_export]
    use crate::enforce::enforce_net;
    #[pymodule_export]
    use crate::experiments::{VolumeExperiment, draw_links, draw_visits, draw_workloads};
    #[pymodule_export]
    use crate::fluid::simulate_flows;
    #[pymodule_export]
    use crate::lab::{
        LabNetwork, lab_failures, lab_machines, lab_prefix, lab_view, labs, record_lab_failure, remove_lab,
        run_lab, stand_lab,
    };
    #[cfg(feature = "service")]
    #[pymodule_export]
    use crate::nfs::{enforce_nfs, remove_nfs_file, replay_nfs};
    #[pymodule_export]
    use crate::operations::{OperationsRun, OperationsScenario};
    #[pymodule_export]
    use crate::packets::{PacketRun, PacketScenario};
    #[pymodule_export]
    use crate::place::place_replicas;
    #[pymodule_export]
    use crate::policy::{BlockRequest, PyAppRequest, RequestBatch, View};
    #[pymodule_export]
    use crate::probe::{
        probe_bottlenecks, probe_calibrate, probe_cross, probe_hops, probe_listen, probe_mesh,
        probe_modelled, probe_path, probe_steady,
    };
    #[pymodule_export]
    use crate::probe_evaluation::{probe_earlier, probe_questions, probe_recognised, probe_stability};
    #[pymodule_export]
    use crate::reevaluate::reevaluate;
    #[pymodule_export]
    use crate::registries::plug_ins;
    #[pymodule_export]
    use crate::scheduler::Scheduler;
    #[pymodule_export]
    use crate::schema::{schema, schemas};
    #[cfg(feature = "service")]
    #[pymodule_export]
    use crate::serve::{check_service, new_token, serve};
    #[pymodule_export]
    use crate::session::EngineSession;
    #[cfg(feature = "service")]
    #[pymodule_export]
    use crate::simulated_clock::SimulatedClock;
    #[pymodule_export]
    use crate::simulation::{Run, Scenario, check_policy};
    #[pymodule_export]
    use crate::slo::SloWorkloads;
    #[pymodule_export]
    use crate::slo_check::check_slo;
    #[pymodule_export]
    use crate::slo_pack::{file_text, pack_slo};
    #[pymodule_export]
    use crate::tasks::{app_file, migrate, place_tasks, simulate_apps};
    #[pymodule_export]
    use crate::traces::{Trace, byte_count, check_device};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Set and not added: it is no public name of the module.
        module.setattr("__getattr__", wrap_pyfunction!(crate::absent::absent, module)?)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

"""Runs a reproduction: makes the runs that figures of a paper need, then their rows and pictures.

The module of each paper has the same members: `FIGURES` by name, `runs` for the number of runs, `make` for
the rows, and `check_horizon`. It may have `MAIN`, the results that matter most.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from leeward.errors import InputError, names, whole_number
from leeward.simulation import runs_at_once
from leeward_reproduce import results_folder
from leeward_reproduce.choreo import lab_figures as choreo_lab
from leeward_reproduce.choreo import perform as choreo
from leeward_reproduce.etalon import perform as etalon
from leeward_reproduce.etalon.kernels import perform as etalon_lab
from leeward_reproduce.etalon.real import perform as etalon_real
from leeward_reproduce.hotspots import perform as hotspots
from leeward_reproduce.hotspots.kubernetes import perform as hotspots_kubernetes
from leeward_reproduce.hotspots.real import perform as hotspots_real
from leeward_reproduce.rows import Row
from leeward_reproduce.sinbad import perform as sinbad
from leeward_reproduce.sinbad.real import perform as sinbad_real
from leeward_reproduce.slo import perform as slo
from leeward_reproduce.slo.real import perform as slo_real
from leeward_reproduce.variants import with_tests


class HasTitle(Protocol):
    """A figure of any paper."""

    @property
    def title(self) -> str:
        """Title."""


PAPERS: dict[str, Any] = {
    "sinbad": sinbad,
    "choreo": choreo,
    "hotspots": hotspots,
    "slo": slo,
    "etalon": etalon,
}
"""Papers that can be reproduced."""
LABS: dict[str, Any] = {"choreo": choreo_lab, "etalon": etalon_lab}
"""Papers with figures that run in a lab on this machine."""
REALS: dict[str, Any] = {
    "sinbad": sinbad_real,
    "hotspots": hotspots_real,
    "slo": slo_real,
    "etalon": etalon_real,
}
"""Papers with figures that run on real bytes: of HDFS, or of file servers."""
KUBERNETES: dict[str, Any] = {"hotspots": hotspots_kubernetes}
"""Papers with figures that run in Kubernetes."""


def reproduce(
    paper: str,
    figures: Sequence[str] | str | None = None,
    *,
    seeds: int = results_folder.SEEDS,
    jobs: int | None = None,
    out: str | PathLike[str] | None = None,
    horizon: str | None = None,
    lab: bool = False,
    real: bool = False,
    kubernetes: bool = False,
    progress: Callable[[float], object] | None = None,
) -> list[Row]:
    """Measures figures that a paper reports.

    Args:
        paper: One of `PAPERS`.
        figures: Names of its figures; by default all. A string is one name.
        seeds: Number of seeds, which are numbered from 1; all policies of a seed see the same arrivals.
        jobs: Number of runs at once; by default the number of processors.
        out: Folder for `rows.json`, `results.md` (a summary, and the rows as tables), `run.json` (inputs),
            `pictures/`, and `sweeps/`, from which another call continues; by default nothing is kept. Another
            call with the same seeds and horizon adds its figures.
        horizon: Length of every run, such as `5min`, for a first look; the notes of rows then say so. By
            default, runs are as long as the paper's.
        lab: True to run figures between real kernels on this machine, as root, instead of in the simulator.
            The papers in `LABS` have such figures.
        real: True to run figures on real bytes of HDFS or of file servers in a lab on this machine, as root.
            The papers in `REALS` have such figures.
        kubernetes: True to run figures under kube-scheduler, on a control plane of this machine. The papers
            in `KUBERNETES` have such figures.
        progress: Called with the completed share of all runs, from several threads.

    Raises:
        InputError: The paper, a figure or an argument is invalid; another reproduction writes to `out`; or
            `out` holds other files, or figures with other inputs. Nothing has run in these cases.
        OSError: The lab or the control plane cannot run on this machine. Runs on real bytes need the lab only
            for those that `out` does not have.
    """
    inputs = check(paper, figures, seeds, jobs, out, horizon, lab, real, kubernetes)
    module = _module(paper, lab, real, kubernetes)
    selection = _select(paper, figures, lab, real, kubernetes)
    with nullcontext(out) if out is not None else tempfile.TemporaryDirectory(prefix="leeward-") as folder:
        place = Path(folder)
        rows: list[Row] = with_tests(module.make(selection, inputs, jobs, place, out is not None, progress))
        if out is not None:
            titles = {name: figure.title for name, figure in module.FIGURES.items()}
            results_folder.write(place, inputs, titles, rows, getattr(module, "MAIN", ()))
    return rows


def check(
    paper: str,
    figures: Sequence[str] | str | None,
    seeds: int,
    jobs: int | None,
    out: str | PathLike[str] | None,
    horizon: str | None,
    lab: bool = False,
    real: bool = False,
    kubernetes: bool = False,
) -> results_folder.Inputs:
    """Checks the arguments of `reproduce`, and returns the inputs of its rows.

    Raises:
        InputError: An argument is invalid.
    """
    _select(paper, figures, lab, real, kubernetes)
    whole_number("seeds", seeds, 1)
    runs_at_once(jobs)
    if horizon is not None:
        _module(paper, lab, real, kubernetes).check_horizon(horizon)
    full_seeds = default_seeds(paper, lab, real, kubernetes)
    inputs = results_folder.current_inputs(paper, seeds, horizon, lab, full_seeds, real, kubernetes)
    if out is not None:
        results_folder.read_rows(Path(out), inputs)
    return inputs


def runs(
    paper: str,
    figures: Sequence[str] | str | None,
    seeds: int,
    lab: bool = False,
    real: bool = False,
    kubernetes: bool = False,
) -> int:
    """Number of runs of the figures.

    Raises:
        InputError: The paper or a figure is unknown.
    """
    selection = _select(paper, figures, lab, real, kubernetes)
    return int(_module(paper, lab, real, kubernetes).runs(selection, seeds))


def default_seeds(paper: str, lab: bool = False, real: bool = False, kubernetes: bool = False) -> int:
    """Number of seeds of a full reproduction."""
    module = _modules(lab, real, kubernetes).get(paper)
    return int(getattr(module, "SEEDS", results_folder.SEEDS))


def figure_names(paper: str, lab: bool = False, real: bool = False, kubernetes: bool = False) -> list[str]:
    """All names of figures of a paper, or of those that run in a lab, on real bytes or in Kubernetes."""
    module = _module(paper, lab, real, kubernetes)
    return [*module.FIGURES, *_aliases(module)]


def _modules(lab: bool, real: bool, kubernetes: bool) -> dict[str, Any]:
    return KUBERNETES if kubernetes else REALS if real else LABS if lab else PAPERS


def _module(paper: str, lab: bool, real: bool, kubernetes: bool) -> Any:
    return _modules(lab, real, kubernetes)[paper]


def _aliases(module: Any) -> Mapping[str, Sequence[str]]:
    """Figures without runs of their own, each with the figures that show it."""
    return getattr(module, "ALIASES", {})


def _select(
    paper: str, figures: Sequence[str] | str | None, lab: bool, real: bool, kubernetes: bool
) -> Mapping[str, HasTitle]:
    if paper not in PAPERS:
        message = f"unknown paper `{paper}`; there are: {', '.join(PAPERS)}"
        raise InputError.about("paper", message)
    if kubernetes and (lab or real):
        raise InputError.about("kubernetes", "runs in Kubernetes are in no lab: leave out `lab` and `real`")
    if kubernetes and paper not in KUBERNETES:
        message = f"`{paper}` has no figures in Kubernetes; these papers have: {', '.join(KUBERNETES)}"
        raise InputError.about("kubernetes", message)
    if real and lab:
        raise InputError.about("real", "runs on real bytes are in a lab already: leave out `lab`")
    if lab and paper not in LABS:
        message = f"`{paper}` has no figures that run in a lab; these papers have: {', '.join(LABS)}"
        raise InputError.about("lab", message)
    if real and paper not in REALS:
        message = f"`{paper}` has no figures on real bytes; these papers have: {', '.join(REALS)}"
        raise InputError.about("real", message)
    module = _module(paper, lab, real, kubernetes)
    by_name: Mapping[str, HasTitle] = module.FIGURES
    needed = None if figures is None else names(figures)
    if needed == []:
        raise InputError.about("figures", "expected at least one")
    aliases = _aliases(module)
    if needed is not None:
        for name in needed:
            if name not in by_name and name not in aliases:
                known = ", ".join([*by_name, *aliases])
                message = f"unknown figure `{name}`; there are: {known}"
                raise InputError.about("figures", message)
        needed = [figure for name in needed for figure in aliases.get(name, (name,))]
    return {name: by_name[name] for name in by_name if needed is None or name in needed}

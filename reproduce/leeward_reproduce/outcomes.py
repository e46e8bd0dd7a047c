"""Runs experiments of figures under several seeds, in parallel."""

from collections.abc import Callable, Sequence
from typing import Any

from leeward.simulation import runs_at_once
from leeward.sweep.execute import cancel_at_end


def outcomes(
    tasks: Sequence[tuple[str, int]],
    run: Callable[[str, int], Any],
    jobs: int | None,
    progress: Callable[[float], object] | None,
) -> dict[str, list[Any]]:
    """Results of each figure, in the order of its tasks.

    Args:
        tasks: Pairs of a figure and a seed.
        run: Runs the experiment of a figure with a seed; called from several threads.
        jobs: Number of runs at once; by default the number of processors.
        progress: Called with the completed share.
    """
    import joblib

    parallel = joblib.Parallel(runs_at_once(jobs), backend="threading", return_as="generator", batch_size=1)
    result: dict[str, list[Any]] = {name: [] for name, _ in tasks}
    finished = parallel(joblib.delayed(run)(name, seed) for name, seed in tasks)
    with cancel_at_end(finished):
        for done, ((name, _), outcome) in enumerate(zip(tasks, finished, strict=True), 1):
            result[name].append(outcome)
            if progress:
                progress(done / len(tasks))
    return result

"""Looks at a running app again, every T (Choreo, section 2.4), and moves tasks if that is worth it.

To measure the network costs time, because the app's transfers pause for it: otherwise trains would measure
what the app leaves. So the progress of the transfers decides first. If they will end about when the forecast
says, the network has not changed. If not, the time beyond the forecast is the most that a measurement can
save, and it is measured only if that is more than the measurement takes.

When a phase of the app has ended, nothing is sent, so the placement of the next phases is re-evaluated at
once, on the network as last measured (section 7.2).
"""

import math
from collections.abc import Callable
from typing import Any

from leeward.placement import Reevaluation
from leeward.tenant.execution import Execution
from leeward.tenant.fleet import Event, Fleet
from leeward.tenant.network import Survey
from leeward.tenant.transfers import Transfers

Judge = Callable[[dict[str, Any], Transfers, bool], Reevaluation]
"""Re-evaluates the placement of what is left on a network: of all phases, or (True) of the current one."""


def worth_measuring(observed_s: float, forecast_s: float | None, survey_s: float) -> tuple[bool, str]:
    """Whether to measure the network again, and the reason.

    Args:
        observed_s: Time that the rest takes at the rates since the last look; infinite if nothing arrives.
        forecast_s: Time that the rest takes on the network as last measured; None if it never ends.
        survey_s: Time that a measurement takes.
    """
    if forecast_s is None or observed_s == math.inf:
        return True, "a transfer makes no progress"
    late_s = observed_s - forecast_s
    if late_s <= 0:
        return False, "transfers end as the forecast says"
    if late_s <= survey_s:
        return False, f"at most {late_s:.3g} s can be saved; a measurement takes {survey_s:.3g} s"
    return True, f"transfers end {late_s:.3g} s later than the forecast says"


class Watch:
    """Looks at a run again; the caller passes on events, and calls `step` often."""

    def __init__(
        self,
        fleet: Fleet,
        execution: Execution,
        *,
        every_s: float,
        survey_s: float,
        believed: dict[str, Any],
        judge: Judge,
        measure: Callable[[], Survey],
    ) -> None:
        """Watches a run that begins now.

        Args:
            fleet: Helpers of the hosts.
            execution: The run.
            every_s: Time between looks.
            survey_s: Time that a measurement takes.
            believed: The network as last measured or assumed.
            judge: Re-evaluates the placement.
            measure: Measures the network while the run is quiet.
        """
        self._fleet = fleet
        self._execution = execution
        self._every_s = every_s
        self._survey_s = survey_s
        self._believed = believed
        self._judge = judge
        self._measure = measure
        self._due_s = every_s
        self._missing: set[str] = set()
        """Hosts whose progress is unknown."""
        self._last_s = 0.0
        self._last_left = [transfer.left for transfer in execution.transfers.all]
        self._pausing = False
        self._carrying = False
        """True if the state of tasks is on its way, until when their transfers wait."""
        self.looks: list[dict[str, Any]] = []
        """Each look: `t_s`, `observed_s` and `forecast_s` (of the current phase), `measured`, `reason`; after
        a measurement also `seconds`, `bytes`, and after a re-evaluation `resumed_s`, `before_s`, `after_s`,
        `gain_s`, `because` and `moves`."""

    def note(self, event: Event) -> None:
        """Takes an event that the run has handled."""
        if event["event"] == "progress" and event["host"] in self._missing:
            self._missing.remove(event["host"])
            if not self._missing:
                self._look()

    def step(self) -> None:
        """Asks for progress when a look is due, and measures when a paused run is quiet."""
        execution = self._execution
        if execution.ended_s is not None:
            return
        if execution.moving:
            self._carrying = True
        elif execution.between_phases:
            self._begin_phase()
        elif self._carrying:
            self._carrying = False
            self._begin_interval()
        elif self._pausing:
            if execution.quiet:
                self._pausing = False
                self._reevaluate()
        elif not self._missing and execution.now_s() >= self._due_s:
            self._missing = set(self._fleet.hosts)
            for host in self._fleet.hosts:
                self._fleet.order(host, "progress")

    def _look(self) -> None:
        transfers, now_s = self._execution.transfers, self._execution.now_s()
        forecast_s = self._judge(self._believed, transfers, True).before_s
        observed_s = self._observed_s(now_s)
        measure, reason = worth_measuring(observed_s, forecast_s, self._survey_s)
        self.looks.append(
            {
                "t_s": now_s,
                "observed_s": observed_s if math.isfinite(observed_s) else None,
                "forecast_s": forecast_s,
                "measured": measure,
                "reason": reason,
            }
        )
        self._due_s = now_s + self._every_s
        if measure:
            self._pausing = True
            self._execution.pause()

    def _observed_s(self, now_s: float) -> float:
        """Time until the last transfer of the phase ends at the rates since the last look."""
        transfers = self._execution.transfers.all
        left = [transfer.left for transfer in transfers]
        since_s = now_s - self._last_s
        arrived = [before - after for before, after in zip(self._last_left, left, strict=True)]
        times = [
            rest * since_s / count if count > 0 else math.inf
            for rest, count, transfer in zip(left, arrived, transfers, strict=True)
            if not transfer.ended and transfer.phase == self._execution.transfers.phase
        ]
        self._last_s, self._last_left = now_s, left
        return max(times, default=0.0)

    def _reevaluate(self) -> None:
        """Measures, and moves tasks if that is worth it; then the run continues."""
        if self._execution.transfers.ended:
            return
        survey = self._measure()
        self._believed, self._survey_s = survey.cluster, survey.seconds
        self.looks[-1] |= {"seconds": survey.seconds, "bytes": survey.sent_bytes}
        self._move()

    def _begin_phase(self) -> None:
        """Moves tasks before a phase begins, if that is worth it."""
        execution = self._execution
        self._pausing = self._carrying = False
        # Late answers would belong to the phase that has ended.
        self._missing = set()
        self.looks.append(
            {
                "t_s": execution.now_s(),
                "observed_s": None,
                "forecast_s": self._judge(self._believed, execution.transfers, True).before_s,
                "measured": False,
                "reason": f"phase {execution.transfers.phase} begins",
            }
        )
        self._move()

    def _move(self) -> None:
        execution = self._execution
        answer = self._judge(self._believed, execution.transfers, False)
        for move in answer.moves:
            execution.move(move["task"], move["to"])
        execution.resume()
        self._begin_interval()
        self.looks[-1] |= {
            "resumed_s": self._last_s,
            "before_s": answer.before_s,
            "after_s": answer.after_s,
            "gain_s": answer.gain_s,
            "because": answer.reason,
            "moves": answer.moves,
        }

    def _begin_interval(self) -> None:
        """Lets the time until the next look, and the rates that it sees, begin now."""
        self._last_s = self._execution.now_s()
        self._last_left = [transfer.left for transfer in self._execution.transfers.all]
        self._due_s = self._last_s + self._every_s

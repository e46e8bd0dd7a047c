"""Most loaded links of a controller, refreshed repeatedly: the content of `leeward top`."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from leeward.client.client import Client
from leeward.client.problems import UnreachableError
from leeward.client.types import Link

TREND_STEP_S = 60
TREND_STEPS = 10
"""Length of a trend: ten minutes."""
TREND_S = 10.0
"""Seconds until a trend is read again; at most a step of the controller's history."""


@dataclass(frozen=True)
class Row:
    """A link.

    Attributes:
        link: Name.
        capacity_bps: Capacity.
        measured_bps: Load in telemetry; None without telemetry.
        utilization: Measured load as a share of the capacity.
        pending_bps: Placed load that telemetry does not show yet.
        hot_s: Time for which the link has been hot; None if it is not hot.
        age_s: Age of the last telemetry; None without telemetry.
        trend: Utilization minute by minute, None without telemetry.
    """

    link: str
    capacity_bps: int
    measured_bps: int | None
    utilization: float | None
    pending_bps: int
    hot_s: float | None
    age_s: float | None
    trend: list[float | None]


@dataclass(frozen=True)
class View:
    """Answer of a controller.

    Attributes:
        cluster: Name of the cluster.
        time: Time by the controller's clock.
        interval_s: Interval of reports.
        hot_above: Utilization above which links are hot.
        hot: Number of hot links.
        rows: Most loaded links.
        silent_s: Time since the controller stopped answering; 0 if it answers.
        why: Reason why the controller does not answer.
    """

    cluster: str
    time: str
    interval_s: float
    hot_above: float
    hot: int
    rows: list[Row]
    silent_s: float = 0.0
    why: str | None = None

    @property
    def old(self) -> str | None:
        """Reason why the view is stale; None for a current one."""
        if self.why is not None:
            return f"the controller has not answered for {self.silent_s:.0f} s: {self.why}"
        ages = [row.age_s for row in self.rows if row.utilization is not None and row.age_s is not None]
        if self.rows and not ages:
            return "no link has telemetry: no loads were reported for three intervals"
        if ages and min(ages) > 2 * self.interval_s:
            text = f"the last report ended {min(ages):.0f} s ago"
            return f"{text}, and an interval is {self.interval_s:g} s"
        return None

    def record(self) -> dict[str, Any]:
        """The view as JSON; `old` is the reason why it is stale, or None."""
        return asdict(self) | {"old": self.old}


class Board:
    """View of the links, refreshed on request.

    Attributes:
        client: Client of the controller.
        most: Number of links.
        clock: Clock in seconds, with any origin.
    """

    def __init__(self, client: Client, most: int, clock: Callable[[], float]) -> None:
        """A board before its first request."""
        self.client = client
        self.most = most
        self.clock = clock
        self._last: tuple[float, View] | None = None
        self._trends: dict[str, tuple[float, list[float | None]]] = {}

    def view(self) -> View:
        """Current view; if the controller does not answer, the last view with its age.

        Raises:
            UnreachableError: The controller has not answered yet.
            ProblemError: The controller refuses.
        """
        try:
            view = self._read()
        except UnreachableError as error:
            if self._last is None:
                raise
            since, view = self._last
            fields = asdict(view) | {"rows": view.rows, "silent_s": self.clock() - since, "why": error.why}
            return View(**fields)
        self._last = (self.clock(), view)
        return view

    def _read(self) -> View:
        status = self.client.status()
        now = read_time(status["time"])
        links = list(self.client.links(sort="utilization", most=self.most))
        hot = sum(1 for _ in self.client.hotspots())
        names = {link["link"] for link in links}
        self._trends = {link: trend for link, trend in self._trends.items() if link in names}
        return View(
            cluster=status["cluster"],
            time=status["time"],
            interval_s=status["interval_s"],
            hot_above=status["hot_above"],
            hot=hot,
            rows=[self._row(link, now) for link in links],
        )

    def _row(self, link: Link, now: datetime) -> Row:
        def since(time: str | None) -> float | None:
            return None if time is None else max((now - read_time(time)).total_seconds(), 0.0)

        return Row(
            link=link["link"],
            capacity_bps=link["capacity_bps"],
            measured_bps=link["measured_bps"],
            utilization=link["utilization"],
            pending_bps=link["pending_bps"],
            hot_s=since(link["hot_since"]),
            age_s=since(link["until"]),
            trend=self._trend(link["link"], now),
        )

    def _trend(self, link: str, now: datetime) -> list[float | None]:
        read_at, trend = self._trends.get(link, (None, []))
        if read_at is None or self.clock() - read_at >= TREND_S:
            since = now - timedelta(seconds=TREND_STEP_S * TREND_STEPS)
            series = self.client.link_history(link, since=since, step_s=TREND_STEP_S)["series"]
            trend = series[0]["utilization"][-TREND_STEPS:] if series else []
            self._trends[link] = (self.clock(), trend)
        return trend


def read_time(text: str) -> datetime:
    """A time of the service, to the microsecond."""
    # The service writes nanoseconds; some versions of Python accept six digits at most.
    head, dot, rest = text.partition(".")
    digits = rest.rstrip("Z")
    return datetime.fromisoformat(f"{head}{dot}{digits[:6]}".rstrip("Z")).replace(tzinfo=UTC)

"""The answer in short: each hot place, since when it is hot, why, and what to do.

A place is a rack, or a link of another cross-section. Its cause is the finding that explains most of its hot
intervals. The remedy follows from the cause, or else from how long most of its hot time lasts at a stretch
(Hotspots, section 3.2).
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow

from leeward.hotspots.causes import Causes
from leeward.hotspots.durations import CLASSES
from leeward.hotspots.hot import TOR


class Cause(NamedTuple):
    """A cause of hot intervals in words, and its remedy; None if the remedy depends on the duration."""

    words: str
    remedy: str | None


CAUSES: Mapping[str, Cause] = {
    "capacity-loss": Cause("the link lost capacity", "repair"),
    "demand-growth": Cause("the load grew", None),
    "both": Cause("the load grew and the link lost capacity", "repair"),
    "demand": Cause("usual load too high for the link", None),
    "low-uplink": Cause("small uplink for its disks", "provision"),
    "network-intensive-tasks": Cause("tasks that need much bandwidth", None),
    "storage": Cause("traffic of storage", None),
    "compute": Cause("traffic of tasks", None),
    "storage-and-compute": Cause("traffic of storage and of tasks", None),
    "unknown": Cause("unknown: not seen before", None),
}
REMEDIES: Mapping[str, str] = {
    "repair": "restore its capacity",
    "provision": "add ports (leeward plan)",
    "place": "place work elsewhere (leeward place)",
    "migrate": "move tasks (leeward migrate)",
}


def hot_places(
    links: pyarrow.Table,
    runs: pyarrow.Table,
    causes: Causes,
    end_ms: int | None,
    lost: Mapping[str, Mapping[str, int]],
    intervals: int,
) -> pyarrow.Table:
    """Hot places, those with the most hot intervals first.

    Args:
        links: Result of `hot.by_link`.
        runs: Result of `durations.named_runs`.
        causes: Causes of hot links.
        end_ms: End of the telemetry.
        lost: Readings that each link lost, by reason; links by name.
        intervals: Number of intervals from the start to the end of the telemetry.

    Returns:
        `place`, `link` (its hottest), `hot` (intervals, both directions), `rate` (share of the intervals of
        the hottest link), `since_ms` (start of the first hot interval), `until_ms` (end of the last one),
        `open` (still hot at the end of the telemetry), `lasts` (persistence class with most of the hot time),
        `cause`, `evidence`, `remedy` (a key of `REMEDIES`), `lost` (intervals of the hottest link that are
        not judged: a longer hotspot may have another remedy), `lost_why` (readings lost, by reason).
    """
    by_place: dict[str, list[dict[str, Any]]] = {}
    for link in links.to_pylist():
        if link["hot"]:
            by_place.setdefault(_place(link), []).append(link)
    hot_ms: dict[str, dict[str, int]] = {}
    for run in runs.to_pylist():
        times = hot_ms.setdefault(_place(run), {})
        times[run["class"]] = times.get(run["class"], 0) + run["end_ms"] - run["start_ms"]
    findings = causes.findings.to_pylist()
    rows = [_row(place, group, hot_ms[place], findings, end_ms) for place, group in by_place.items()]
    seen = dict(zip(links["name"].to_pylist(), links["intervals"].to_pylist(), strict=True))
    for row in rows:
        reasons = lost.get(row["link"], {})
        row["lost"] = max(0, intervals - seen[row["link"]])
        row["lost_why"] = ", ".join(f"{reason} {number:,}" for reason, number in sorted(reasons.items()))
    rows.sort(key=lambda row: (-row["hot"], row["place"]))
    return pyarrow.Table.from_pylist(rows, _SCHEMA)


def _place(row: Mapping[str, Any]) -> str:
    """Rack of a rack's link; the link itself elsewhere."""
    return str(row["rack"] if row["cross_section"] == TOR else row["name"])


def _row(
    place: str,
    links: list[dict[str, Any]],
    times: Mapping[str, int],
    findings: Iterable[dict[str, Any]],
    end_ms: int | None,
) -> dict[str, Any]:
    hottest = max(links, key=lambda link: (link["hot"], link["name"]))
    names = {place, *(link["name"] for link in links)}
    of_place = [row for row in findings if row["subject"] in names and row["hot"]]
    # A known cause is better than an unknown one, and a rack's cause says more than that of one of its links.
    finding = max(
        of_place,
        key=lambda row: (row["cause"] != "unknown", row["hot"], row["subject"] == place),
        default={"cause": "unknown", "evidence": ""},
    )
    lasts = max(CLASSES, key=lambda kind: times.get(kind.name, 0))
    until = max(link["last_hot_ms"] for link in links)
    return {
        "place": place,
        "link": hottest["name"],
        "hot": sum(link["hot"] for link in links),
        "rate": hottest["rate"],
        "since_ms": min(link["hot_since_ms"] for link in links),
        "until_ms": until,
        "open": until == end_ms,
        "lasts": lasts.name,
        "cause": finding["cause"],
        "evidence": finding["evidence"],
        "remedy": CAUSES[finding["cause"]].remedy or lasts.remedy,
    }


_SCHEMA = pyarrow.schema(
    [
        ("place", pyarrow.string()),
        ("link", pyarrow.string()),
        ("hot", pyarrow.int64()),
        ("rate", pyarrow.float64()),
        ("since_ms", pyarrow.int64()),
        ("until_ms", pyarrow.int64()),
        ("open", pyarrow.bool_()),
        ("lasts", pyarrow.string()),
        ("cause", pyarrow.string()),
        ("evidence", pyarrow.string()),
        ("remedy", pyarrow.string()),
        ("lost", pyarrow.int64()),
        ("lost_why", pyarrow.string()),
    ]
)

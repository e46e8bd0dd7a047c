"""Tables of causes."""

from typing import Any

from leeward._quantities import NONE, percent_text, rate_text
from leeward.hotspots.analysis import Analysis
from leeward.hotspots.causes.provision import CLASSES
from leeward.hotspots.causes.split import OWNERS
from leeward.hotspots.hot import TOR
from leeward.hotspots.report.section import Section, rest, threshold

_PER_CPU = (("bps_per_cpu", 8e6), ("normalized", 1.0))
"""Columns of jobs, and the units that they are shown in."""


def causes(analysis: Analysis) -> Section | None:
    """Table of changes at the start of hot runs."""
    rows = analysis.causes.by_cause.to_pylist()
    if not rows:
        return None
    fell, grew = (percent_text(share, None) for share in (analysis.settings.fell, analysis.settings.grew))
    return Section(
        "Did the capacity fall, or the load grow?",
        ("CROSS-SECTION", "CAUSE", "LINKS", "RUNS", "HOT", "SHARE"),
        "<<>>>>",
        [
            (
                *(row["cross_section"], row["cause"], f"{row['links']:,}", f"{row['runs']:,}"),
                *(f"{row['intervals']:,}", percent_text(row["share"])),
            )
            for row in rows
        ],
        words=(
            (
                "capacity-loss",
                f"capacity below {fell} and load at most {grew} of the earlier maxima",
            ),
            (
                "demand-growth",
                f"capacity as before, load above {grew} of the earlier maximum",
            ),
            ("both", "capacity below and load above; or hot even at the earlier capacity"),
            (
                "demand",
                "neither changed: the link is too small for its usual load",
            ),
            ("unknown", "the link was not seen before the hour in which it became hot"),
        ),
    )


def findings(analysis: Analysis, top: int) -> Section | None:
    """Causes with their evidence; those of jobs first, then those with the most hot intervals."""
    rows = analysis.causes.findings.to_pylist()
    if not rows:
        return None
    in_order = [row for row in rows if row["hot"] is None] + [row for row in rows if row["hot"] is not None]
    return Section(
        "Why?",
        ("WHERE", "CAUSE", "HOT", "EVIDENCE"),
        "<<><",
        [
            (row["subject"], row["cause"], NONE if row["hot"] is None else f"{row['hot']:,}", row["evidence"])
            for row in in_order[:top]
        ],
        [*rest(len(rows) - top, "findings"), *_missing_tables(analysis)],
    )


def _missing_tables(result: Analysis) -> list[str]:
    """Tables of the fleet that were not given."""
    missing = []
    mixed = sum(sum(row[name] for name in OWNERS) for row in result.causes.split.to_pylist())
    unknown = sum(row["unknown"] for row in result.causes.split.to_pylist())
    if mixed and unknown == mixed:
        missing.append(
            f"the owners of {mixed:,} hot intervals of mixed racks are unknown: they need --split, and a"
            " guideline for disks and processors"
        )
    if result.causes.tasks is None:
        missing.append("jobs and their places are not analyzed: they need --tasks")
    return missing


def split(analysis: Analysis) -> Section | None:
    """Owners of the hotspots of mixed racks; None without their table."""
    rows = [row for row in analysis.causes.split.to_pylist() if any(row[name] for name in OWNERS[:4])]
    if not rows:
        return None
    sums = {name: sum(row[name] for row in rows) for name in OWNERS}
    total = sum(sums.values())
    storage, compute = (sum(row[f"{name}_kbits"] for row in rows) for name in ("storage", "compute"))
    more = []
    if storage + compute:
        more.append(
            f"{percent_text(storage / (storage + compute))} of their traffic in these intervals was storage's"
        )
    return Section(
        "Whose are the hotspots of mixed racks?",
        ("WHOSE", "HOT", "SHARE"),
        "<>>",
        [(name, f"{count:,}", percent_text(count / total)) for name, count in sums.items()],
        more,
        words=(
            (
                "storage, compute",
                (
                    f"throughput above {percent_text(analysis.settings.split, None)}"
                    " of what is provisioned for it (figure 6)"
                ),
            ),
        ),
    )


def jobs(analysis: Analysis, top: int) -> Section | None:
    """Bandwidth per processor of jobs, and places of network-intensive tasks; None without tasks."""
    tasks = analysis.causes.tasks
    if tasks is None:
        return None
    rows = tasks.jobs.to_pylist()
    more = list(rest(len(rows) - top, "jobs"))
    if tasks.correlation is None:
        more.append("correlation of network-intensive tasks per Gb/s with utilization over racks: unknown")
    else:
        r, low, high = tasks.correlation
        more.append(
            "correlation of network-intensive tasks per Gb/s with utilization over racks (figure 8):"
            f" {r:.2f} ({low:.2f} to {high:.2f})"
        )
    return Section(
        "Which jobs need bandwidth?",
        ("JOB", "MB/S PER CPU", "OVER MEDIAN", "NETWORK-INTENSIVE"),
        "<>>>",
        [
            (
                row["job"],
                *(NONE if row[name] is None else f"{row[name] / by:,.3g}" for name, by in _PER_CPU),
                "yes" if row["intensive"] else "no",
            )
            for row in rows[:top]
        ],
        more,
        words=(
            (
                "network-intensive",
                f"more than {analysis.settings.intensive:g} times the median job's bandwidth per processor",
            ),
            ("in brackets", "95 % confidence interval; of skills by bootstrap over links"),
        ),
    )


def uplinks(analysis: Analysis) -> Section | None:
    """Uplinks relative to disks, and hot intervals; None if no rack has a class."""
    fleet = analysis.causes.provision
    racks = [row for row in fleet.racks.to_pylist() if row["class"] is not None]
    if not racks:
        return None
    intervals, requests = _intervals(analysis), _requests(analysis)
    rows = []
    for name in CLASSES:
        of_class = [row for row in racks if row["class"] == name]
        if of_class:
            ratios = [row["normalized"] for row in of_class]
            hot, total = (
                sum(intervals.get(row["rack"], (0, 0))[part] for row in of_class) for part in (0, 1)
            )
            rows.append(
                (
                    *(name, f"{len(of_class):,}", percent_text(min(ratios)), percent_text(max(ratios))),
                    *(f"{hot:,}", percent_text(hot / total if total else None)),
                    *(percent_text(share) for share in requests.get(name, ())),
                )
            )
    cpu = "" if fleet.cpu_bps is None else f", {rate_text(fleet.cpu_bps)} for a processor"
    disks = [row["normalized"] for row in racks if row["kind"] == "disk"]
    guideline = rate_text(fleet.disk_bps_per_tb or 0)
    more = [f"the guideline: {guideline} of uplink for a terabyte of disks{cpu}"]
    if disks:
        more.append(f"the greatest ratio of a disk rack is {max(disks) / min(disks):.2f}x the least")
    return Section(
        "Do uplinks fit their disks?",
        (
            *("CLASS", "RACKS", "LEAST", "MOST", "HOT", "RATE"),
            *(("OF REQUESTS", "OF THOSE TO HOT RACKS") if requests else ()),
        ),
        "<" + (7 if requests else 5) * ">",
        rows,
        more,
        words=(
            (
                "least, most",
                "uplink per disk capacity of racks with disks, as a share of the guideline (figure 9)",
            ),
            (
                "high-, medium-, low-uplink",
                f"above, at (to {percent_text(analysis.settings.matches, None)}) or below it",
            ),
            *((("hot racks", f"at {threshold(analysis.settings.hot_ppm)} or above"),) if requests else ()),
        ),
    )


def _intervals(outcome: Analysis) -> dict[str, tuple[int, int]]:
    """Hot and all intervals of the links of each rack."""
    result: dict[str, tuple[int, int]] = {}
    for row in outcome.links.to_pylist():
        if row["cross_section"] == TOR:
            hot, total = result.get(row["rack"], (0, 0))
            result[row["rack"]] = hot + row["hot"], total + row["intervals"]
    return result


def _requests(result: Analysis) -> dict[str, tuple[float | None, float | None]]:
    """Shares of requests, and of those above the threshold, by class; empty without requests."""
    if result.causes.served is None:
        return {}
    rows = result.causes.served.to_pylist()
    # A bucket that contains the threshold is not above it.
    above = [row for row in rows if 10_000 * row["percent"] >= result.settings.hot_ppm]
    return {name: (_share(rows, name), _share(above, name)) for name in CLASSES}


def _share(rows: list[dict[str, Any]], name: str) -> float | None:
    """Share of requests of a class; None without requests."""
    total = sum(row["requests"] for row in rows)
    return sum(row["requests"] for row in rows if row["class"] == name) / total if total else None


def request_shares(analysis: Analysis) -> Section | None:
    """Shares of requests by class of racks; None without requests."""
    if analysis.causes.served is None:
        return None
    rows_of_bucket: dict[tuple[str, int], dict[str, Any]] = {}
    for row in analysis.causes.served.to_pylist():
        rows_of_bucket.setdefault((row["operation"], row["percent"]), {})[row["class"]] = row
    classes = sorted({kind for row in rows_of_bucket.values() for kind in row}, key=_class_order)
    return Section(
        "Who serves requests at which utilization?",
        ("OPERATION", "UTILIZATION", "REQUESTS", *(kind.upper() for kind in classes)),
        "<>>" + len(classes) * ">",
        [
            (
                operation,
                "not seen" if edge < 0 else f"{edge} to {edge + 5} %",
                f"{sum(row['requests'] for row in row_of_class.values()):,}",
                *(
                    percent_text(row_of_class[kind]["share"]) if kind in row_of_class else percent_text(0.0)
                    for kind in classes
                ),
            )
            for (operation, edge), row_of_class in rows_of_bucket.items()
        ],
        words=(
            (
                "high-, medium-, low-uplink",
                "uplink per disk capacity above, at (to a tenth) or below the guideline (figure 14)",
            ),
        ),
    )


def _class_order(kind: str) -> tuple[int, str]:
    return (CLASSES.index(kind) if kind in CLASSES else len(CLASSES), kind)

"""Tables and sentences of a summary."""

from leeward._quantities import percent_text
from leeward.client.summary_types import Mattered, Summary
from leeward.client.types import Beside, Decision, LinkLoad

KIND_HEADERS = ("KIND", "DECIDED", "BY DEFAULT", "FALLBACK", "BLIND", "REFUSED", "BETTER", "SAME", "WORSE")
HOT_HEADERS = ("HOT LINKS", "LINK-HOURS", "SHARE OF THE TIME SEEN")
MATTERED_HEADERS = (
    "DECISION",
    "TIME",
    "WHAT",
    "DECIDED BY",
    "ITS FULLEST LINK",
    "THE OTHER CHOICE",
    "BETTER BY",
)
MATTERED_SIDES = "<<<<<<>"
ESTIMATE = (
    "An estimate: the traffic of each compared decision is taken off the links that it crosses, and put on "
    "the links of the other choice. A transfer keeps the rate that the network allowed when it was decided, "
    "a task its mean rate. Decisions without a comparison count as they were made. The default policy sees "
    "its own earlier choices of hosts for tasks; Leeward's policy sees the network as it is."
)
"""Method of the estimate of the time that links would have been hot."""
WORDS = (
    ("by default", "The default policy decided, because of the mode: shadow, off, or outside the canary."),
    ("fallback", "Leeward's policy left the decision to the default policy; `leeward explain` shows why."),
    ("blind", "Leeward's policy decided without any telemetry."),
    ("refused", "The request could not be granted, so nothing was decided."),
    (
        "better",
        "Leeward's choice loads fewer hot links than the default policy's, or loads its fullest link less.",
    ),
    ("worse", "Leeward's choice loads more hot links, or loads its fullest link more."),
    ("with and without Leeward", ESTIMATE),
)
"""Words of the tables and their meanings."""


def kind_rows(summary: Summary) -> list[tuple[str, ...]]:
    """A row for each kind of request."""
    return [
        (
            one["kind"],
            *(
                f"{one[name]:,}"
                for name in (
                    "decided",
                    "by_default",
                    "fallback",
                    "blind",
                    "refused",
                    "better",
                    "same",
                    "worse",
                )
            ),
        )
        for one in summary["decisions"]
    ]


def hot_rows(summary: Summary) -> list[tuple[str, ...]]:
    """Time that links were hot: as seen, and with the choices of either policy."""
    hot = summary["hot_link_hours"]
    observed = hot["observed"]

    def row(name: str, hours: float) -> tuple[str, ...]:
        share = percent_text(hours / observed, 2) if observed else "-"
        return (name, f"{hours:,.2f}", share)

    return [
        row("as seen", hot["seen"]),
        row("with Leeward for all", hot["with_leeward"]),
        row("without Leeward", hot["without_leeward"]),
    ]


def effect_sentence(summary: Summary) -> str:
    """Effect of Leeward's choices on hot links, in one sentence."""
    hot = summary["hot_link_hours"]
    if not hot["observed"]:
        return "No link was seen in this time, so nothing can be said about hot links."
    if not hot["compared"]:
        return "No decision was compared with the other policy's choice, so both estimates are what was seen."
    without, leeward = hot["without_leeward"], hot["with_leeward"]
    decided = f"of {hot['compared'] + hot['uncompared']:,} decisions, {hot['compared']:,} were compared"
    if without <= 0 and leeward <= 0:
        return f"No link was hot, with either policy ({decided})."
    change = leeward - without
    if abs(change) < 0.005:
        return f"Either policy leaves links hot for {without:,.2f} link-hours ({decided})."
    word = "less" if change < 0 else "more"
    share = f", {percent_text(abs(change) / without, 0)} {word}" if without > 0 else ""
    hours = f"{leeward:,.2f} link-hours instead of {without:,.2f}{share}"
    return f"With Leeward, links are hot for {hours} ({decided})."


def move_sentence(summary: Summary) -> str:
    """Task moves in one sentence."""
    moves = summary["moves"]
    counts = (
        (moves["considered"], "considered in shadow mode"),
        (moves["advised"], "advised"),
        (moves["done"], "made"),
        (moves["refused"], "refused"),
        (moves["expired"], "left without an answer"),
    )
    parts = [f"{count:,} {text}" for count, text in counts if count]
    return f"Moves of tasks: {', '.join(parts)}." if parts else "No moves of tasks."


def mattered_rows(summary: Summary) -> list[tuple[str, ...]]:
    """The decisions in which both choices differ most."""
    return [_mattered(one) for one in summary["mattered"]]


def _mattered(one: Mattered) -> tuple[str, ...]:
    decision = one["decision"]
    beside: Beside | None = decision["beside"]
    gain = one["gain"]
    better = []
    if gain["hot_links"]:
        links = "hot link" if abs(gain["hot_links"]) == 1 else "hot links"
        better.append(f"{gain['hot_links']:+d} {links}")
    better.append(f"{100 * gain['utilization']:+.0f} points")
    return (
        decision["id"],
        decision["time"].replace("T", " ").partition(".")[0],
        subject(decision),
        _decider(decision),
        "-" if beside is None else _load(beside["decided"]),
        "-" if beside is None else _load(beside["load"]),
        ", ".join(better),
    )


def _decider(decision: Decision) -> str:
    if decision["policy"] == "caller":
        return "the caller"
    return "default policy" if decision["by_default"] else "Leeward"


def subject(decision: Decision) -> str:
    """Subject of a decision, in the client's words if it gave any."""
    request = decision["request"]
    if decision["ref"]:
        return decision["ref"]
    if decision["kind"] == "replicas":
        return f"{request['replicas']} copies of {request['size']}"
    if decision["kind"] == "tasks":
        count = len(request["tasks"])
        tasks = "1 task" if count == 1 else f"{count} tasks"
        return f"{request.get('job') or request['name']}, {tasks}"
    return str((request.get("workload") or {}).get("name", "-"))


def _load(load: LinkLoad | None) -> str:
    if load is None or load["link"] is None:
        return "-"
    share = "" if load["utilization"] is None else f" {percent_text(load['utilization'], 0)}"
    hot = "" if not load["hot"] else f", {load['hot']} hot"
    return f"{load['link']}{share}{hot}"

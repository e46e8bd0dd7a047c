"""Clusters, scenarios and runs in notebooks: tables and pictures of the report."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path

from leeward._native import Cluster, Run, Scenario
from leeward.errors import InputError
from leeward.report import document
from leeward.report.document import Html, Picture


@dataclass(frozen=True)
class Pictures:
    """Pictures with titles and captions, as SVG. A notebook shows them.

    Attributes:
        entries: Title, SVG and caption of each picture.
    """

    entries: tuple[Picture, ...]

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.entries)

    def __iter__(self) -> Iterator[Picture]:
        """The pictures in order."""
        return iter(self.entries)

    def __repr__(self) -> str:
        """Titles of the pictures."""
        return f"<Pictures: {'; '.join(title for title, _, _ in self.entries)}>"

    def _repr_html_(self) -> str:
        return document.pictures(self.entries)

    def save(self, folder: str | PathLike[str]) -> list[Path]:
        """Writes a file for each picture, `1.svg` and so on, into a folder; returns the paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        paths = []
        for number, (_, svg, _) in enumerate(self.entries, 1):
            paths.append(target / f"{number}.svg")
            document.write(paths[-1], svg)
        return paths


def plot(run: Run, baseline: Run | None) -> Pictures:
    """The pictures of the report.

    Raises:
        InputError: The run and the baseline have different arrivals, or are of one policy.
        ImportError: matplotlib is missing.
    """
    from leeward.report.page import page_pictures

    if baseline is None:
        return Pictures(tuple(page_pictures([run])))
    if run.policy == baseline.policy:
        message = f"`{baseline.policy}` is the policy of this run too; expected another"
        raise InputError.about("baseline", message)
    run.compare(baseline)
    return Pictures(tuple(page_pictures([baseline, run])))


def cluster_html(cluster: Cluster) -> str:
    """A cluster in a sentence."""
    from leeward.report.page import facts

    return _titled(cluster.name, document.paragraph(facts(cluster)))


def scenario_html(scenario: Scenario) -> str:
    """A scenario: its cluster, its times and its policies."""
    from leeward._quantities import duration_text
    from leeward.report.page import facts, policy_words

    warmup = f", the first {duration_text(scenario.warmup_s)} not counted" if scenario.warmup_s else ""
    length = f"{duration_text(scenario.horizon_s)} of {scenario.kind}{warmup}, seed {scenario.seed}."
    return _titled(
        scenario.name,
        document.paragraph(length),
        document.paragraph(facts(scenario.cluster)),
        policy_words(scenario.kind, scenario.policies),
    )


def run_html(run: Run) -> str:
    """A run: its figures, as the report has them."""
    from leeward.report.rows import comparison_rows

    rows = ([row.quantity, *row.cells] for row in comparison_rows([run]))
    return _titled(
        f"{run.scenario.name}, seed {run.seed}",
        document.listing(run.provenance),
        document.table(["", run.policy], rows),
    )


def _titled(title: str, *parts: Html) -> str:
    return f"<div><b>{escape(title)}</b>{''.join(parts)}</div>"

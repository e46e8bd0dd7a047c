"""Measurements through a controller, by the agents that report to it."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from leeward.cli.controller import client, controller_errors
from leeward.cli.options import split_list
from leeward.cli.probe.options import survey_progress
from leeward.errors import InputError
from leeward.probe import Train

ByControllerOption = Annotated[
    str | None,
    typer.Option(
        "--controller",
        metavar="URL",
        help="Measure with the agents of this controller; hosts have their names in its cluster.",
        show_default=False,
    ),
]
PATIENCE_S = 10.0
"""Time during which requests are retried while the controller is unavailable or runs another survey."""
AT_ONCE = 64
"""Greatest number of trains that a controller runs at once."""


def hosts_in_cluster(hosts: str) -> list[str]:
    """Names of hosts in a list with commas.

    Raises:
        InputError: A host has an address.
    """
    names = [part for part in split_list(hosts) or [] if part]
    for name in names:
        if "=" in name:
            message = (
                f"`{name}`: with --controller, expected the name of a host in the cluster, without an address"
            )
            raise InputError.about("--hosts", message)
    return names


def train_of(bursts: int, packets: int, payload: int, gap: str) -> dict[str, Any]:
    """A train as a field of a request to a controller."""
    train = Train(bursts, packets, payload, gap)
    return {"bursts": train.bursts, "packets": train.packets, "payload": train.payload, "gap": train.gap}


def run_survey(
    controller: str,
    token_file: Path | None,
    ca: Path | None,
    secret: Path | None,
    title: str,
    kind: Literal["path", "mesh", "bottlenecks"],
    hosts: list[str],
    **fields: Any,
) -> dict[str, Any]:
    """Runs a survey through a controller, and returns the survey with its result.

    Raises:
        InputError: The controller does not answer, or rejects the survey.
        OSError: The survey failed or was cancelled.
    """
    if secret is not None:
        message = "with --controller, `probes.secret` in the controller's settings sets the secret"
        raise InputError.about("--secret", message)
    with controller_errors(), survey_progress(title) as on_progress:
        service = client(controller, token_file, ca, PATIENCE_S)
        survey = service.measure(kind, hosts, progress=on_progress, **fields)
    if survey["state"] == "cancelled":
        raise OSError("the survey was cancelled")
    if survey["result"] is None:
        raise OSError(survey["error"])
    return dict(survey)

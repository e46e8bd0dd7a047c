"""Measurements by agents, which the service starts."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, cast

from leeward.client.base import ClientBase
from leeward.client.http import part
from leeward.client.types import Probe
from leeward.errors import names

EVERY_S = 0.25
"""Seconds between polls of a survey's progress."""


class ProbeMethods(ClientBase):
    """Starts measurements of paths between hosts; one survey at a time."""

    def begin_probe(
        self,
        kind: Literal["path", "mesh", "bottlenecks"],
        hosts: Sequence[str],
        *,
        key: str | None = None,
        **options: Any,
    ) -> Probe:
        """Begins a survey; `probe` shows its progress.

        Args:
            kind: Kind of the survey: a path from the first host to the second, every path, or paths that
                share a bottleneck.
            hosts: Names in the cluster.
            key: Unique key; by default a new one.
            options: Other fields of `POST /v1/probes`; those with the value None are omitted.

        Raises:
            ProblemError: Another survey is running, a host has no agent that measures, or a field is invalid.
            UnreachableError: The service did not answer. A request with the same key does not begin a second
                survey.
        """
        fields = {name: value for name, value in options.items() if value is not None}
        body = {"kind": kind, "hosts": names(hosts), **fields}
        headers = {"idempotency-key": key or self._new_key()}
        return cast(Probe, self._http.ask("POST", "/v1/probes", None, body, headers).body)

    def probes(self) -> Iterator[Probe]:
        """The latest surveys without their results, the latest first."""
        return self._all("/v1/probes")

    def probe(self, probe: str) -> Probe:
        """A survey with its progress and result."""
        return cast(Probe, self._get(f"/v1/probes/{part(probe)}"))

    def cancel_probe(self, probe: str) -> Probe:
        """Stops a survey after its current step."""
        return cast(Probe, self._http.ask("DELETE", f"/v1/probes/{part(probe)}").body)

    def measure(
        self,
        kind: Literal["path", "mesh", "bottlenecks"],
        hosts: Sequence[str],
        *,
        progress: Callable[[int, int], object] | None = None,
        **options: Any,
    ) -> Probe:
        """Runs a survey and waits for its end; an interrupt cancels it.

        Args:
            kind: Kind of the survey, as in `begin_probe`.
            hosts: Names in the cluster.
            progress: Called with the number of completed steps and of all steps.
            options: Other fields of the survey.

        Raises:
            ProblemError: As in `begin_probe`.
            UnreachableError: The service did not answer.
        """
        survey = self.begin_probe(kind, hosts, **options)
        try:
            while survey["state"] == "running":
                self._http.sleep(EVERY_S)
                survey = self.probe(survey["id"])
                if progress is not None and survey["steps"]:
                    progress(survey["done"], survey["steps"])
        except BaseException:
            self.cancel_probe(survey["id"])
            raise
        return survey

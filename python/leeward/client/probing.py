"""Measurements through the service: it orders them from agents that take part."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, cast

from leeward.client.asking import Asker
from leeward.client.http import part
from leeward.client.shapes import Probe
from leeward.errors import names

EVERY_S = 0.25
"""How often it is asked how far a survey is."""


class Probing(Asker):
    """Has paths measured between hosts; one survey at a time."""

    def begin_probe(
        self,
        kind: Literal["path", "mesh", "bottlenecks"],
        hosts: Sequence[str],
        *,
        key: str | None = None,
        **wanted: Any,
    ) -> Probe:
        """Begins a survey; how far it is tells `probe`.

        Args:
            kind: What is measured: a path from the first host to the second, every path, or which paths take
                from each other.
            hosts: By their names in the cluster.
            key: One that nobody else uses; by default a new one.
            wanted: What else the survey takes, as `POST /v1/probes` has it; what is None is left out.

        Raises:
            ProblemError: Another survey is under way, a host takes part in none, or a field is wrong.
            UnreachableError: No answer came. Asked again with the same key, no second survey begins.
        """
        given = {name: value for name, value in wanted.items() if value is not None}
        body = {"kind": kind, "hosts": names(hosts), **given}
        headers = {"idempotency-key": key or self._new_key()}
        return cast(Probe, self._http.ask("POST", "/v1/probes", None, body, headers).body)

    def probes(self) -> Iterator[Probe]:
        """The last surveys without what they came to, the last one first."""
        return self._all("/v1/probes")

    def probe(self, probe: str) -> Probe:
        """A survey, how far it is, and what it came to."""
        return cast(Probe, self._get(f"/v1/probes/{part(probe)}"))

    def cancel_probe(self, probe: str) -> Probe:
        """Stops a survey when the step under way is done."""
        return cast(Probe, self._http.ask("DELETE", f"/v1/probes/{part(probe)}").body)

    def measure(
        self,
        kind: Literal["path", "mesh", "bottlenecks"],
        hosts: Sequence[str],
        *,
        progress: Callable[[int, int], object] | None = None,
        **wanted: Any,
    ) -> Probe:
        """Has a survey made and waits for it; one that is interrupted is cancelled.

        Args:
            kind: As of `begin_probe`, like the rest.
            hosts: By their names in the cluster.
            progress: Told with the steps that are done and how many there are.
            wanted: What else the survey takes.

        Raises:
            ProblemError: As of `begin_probe`.
            UnreachableError: No answer came.
        """
        made = self.begin_probe(kind, hosts, **wanted)
        try:
            while made["state"] == "running":
                self._http.sleep(EVERY_S)
                made = self.probe(made["id"])
                if progress is not None and made["steps"]:
                    progress(made["done"], made["steps"])
        except BaseException:
            self.cancel_probe(made["id"])
            raise
        return made

"""Reads from the API server of Kubernetes, through kubectl.

kubectl knows every way to log in: certificates, tokens, and the programs of clouds. `get --raw` sends a GET
of one path, so no request of this module can change a cluster.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any
from urllib.parse import urlencode

from leeward.errors import InputError

PAGE = 500
"""Objects of an answer."""
TIMEOUT_S = 60
"""Time limit of an answer, in seconds."""
_SPARE_S = 10
"""Seconds that kubectl has beyond the time limit, for its login."""


@dataclass(frozen=True)
class Kubectl:
    """Connection to an API server.

    Attributes:
        kubeconfig: File with the connection; by default that of kubectl.
        context: Context in the file; by default the current one.
    """

    kubeconfig: str | PathLike[str] | None = None
    context: str | None = None

    def items(self, path: str) -> Iterator[dict[str, Any]]:
        """Objects of a list, page by page.

        Args:
            path: Path of the list, such as `/api/v1/pods`.

        Raises:
            InputError: kubectl is missing, or the API server does not answer with a list.
        """
        after: Any = ""
        while True:
            page = self._get(path, urlencode({"limit": PAGE} | ({"continue": after} if after else {})))
            items, metadata = page.get("items"), page.get("metadata")
            # An empty list may be null.
            items = [] if items is None else items
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise self._error(f"{path}: expected a list of objects")
            yield from items
            after = metadata.get("continue") if isinstance(metadata, dict) else None
            if not after or not isinstance(after, str):
                return

    def _get(self, path: str, query: str) -> dict[str, Any]:
        program = shutil.which("kubectl")
        if program is None:
            error = InputError.about("kubectl", "no such program on the path")
            error.add_note("install kubectl, or give the folder of a recording")
            raise error
        command = [program, f"--request-timeout={TIMEOUT_S}s"]
        command += [] if self.kubeconfig is None else [f"--kubeconfig={self.kubeconfig}"]
        command += [] if self.context is None else [f"--context={self.context}"]
        try:
            done = subprocess.run(
                [*command, "get", "--raw", f"{path}?{query}"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT_S + _SPARE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._error(f"{path}: no answer for {TIMEOUT_S + _SPARE_S} s") from None
        if done.returncode != 0:
            raise self._rejection(path, done.stderr.decode(errors="replace"))
        try:
            document = json.loads(done.stdout)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            text = " ".join(done.stdout[:80].decode(errors="replace").split())
            raise self._error(f"{path}: it does not answer as an API server would: `{text}`")
        return document

    def _rejection(self, path: str, text: str) -> InputError:
        lines = [line for line in text.splitlines() if line.strip()]
        why = " ".join((lines[-1] if lines else "kubectl failed").split()).removeprefix("error: ")[:300]
        error = self._error(f"{path}: {why}")
        if "forbidden" in why.lower():
            error.add_note(
                "the user needs the verb `list` on nodes, pods, replicasets, statefulsets and jobs"
            )
        else:
            error.add_note("kubectl get nodes, with the same kubeconfig and context, shows if it works")
        return error

    def _error(self, message: str) -> InputError:
        name = "kubeconfig" if self.kubeconfig is not None else "kubectl"
        return InputError.about(name, message if self.kubeconfig is None else f"{self.kubeconfig}: {message}")

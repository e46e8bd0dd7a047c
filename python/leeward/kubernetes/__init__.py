"""The plugin NetworkLoad in shadow: where last week's pods of a Kubernetes cluster would have run.

`cluster` reads nodes, pods and their owners from the API server, `series` and `history` read ended pods and
traffic from Prometheus, and `collect` joins both to a `Recording`, which `files` stores as a folder. `replay`
places its pods again, in the order of their creation: `filters` says which nodes can take a pod, and the
engine's policy `utp-proactive` chooses among them. `outcome` compares the racks' loads before and after.

Everything is read, and nothing is changed.
"""

from leeward.kubernetes.collect import collect
from leeward.kubernetes.files import read_recording, write_recording
from leeward.kubernetes.outcome import Outcome
from leeward.kubernetes.recording import Recording
from leeward.kubernetes.replay import replay

__all__ = ["Outcome", "Recording", "collect", "read_recording", "replay", "write_recording"]

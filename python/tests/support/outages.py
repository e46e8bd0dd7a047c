"""Outages of a service: killed and started again, or behind a proxy that passes no answers."""

import json
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from support.fixtures import LEEWARD, read_address

CLUSTER = {
    "racks": 5,
    "hosts_per_rack": 4,
    "nic": "1Gbps",
    "oversubscription": 4,
    "cpus": 8,
    "devices": [{"read": "200MB/s", "write": "120MB/s", "capacity": "1TB"}],
}


class Service:
    """A service of its own for one test, at an address that it keeps when it starts again."""

    def __init__(self, folder: Path) -> None:
        (folder / "c.json").write_text(json.dumps(CLUSTER))
        self.folder, self.port = folder, 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        listen = f"127.0.0.1:{self.port}"
        command = [str(LEEWARD), "serve", "--cluster", "c.json", "--listen", listen, "--store", "d.sqlite"]
        command += ["--policy", "uniform", "--task-policy", "borg"]
        self.process = subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        url = read_address(self.process)
        self.port = int(url.rpartition(":")[2])
        return url

    def kill(self) -> None:
        """Ends the service at once, if it runs."""
        if self.process is not None:
            self.process.kill()
            with self.process:
                self.process = None


class Proxy:
    """Forwards connections to a service.

    Attributes:
        mute: While true, no byte of the service's answers passes.
    """

    def __init__(self, port: int) -> None:
        self.mute, self.port = False, port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sockets = [self.listener]
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.port))
                self.sockets += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=ends, daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not (self.mute and source.getpeername()[1] == self.port):
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)

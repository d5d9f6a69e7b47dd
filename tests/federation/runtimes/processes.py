"""Commands as processes that can be killed, and a way between them that can be cut."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Event, Thread

# As in `tests/running.py`, which takes long to import.
MESH = 1e-3
# Forked from one process that has imported all of it once; gRPC, which must not be forked, not yet.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "fedsynth.jobs.serving",
        "fedsynth.jobs.joining",
        "fedsynth.methods.vae.synthesizer",
        "fedsynth.cli.network",
        "tests.federation.runtimes.processes",
        # What an accountant imports when it is first asked.
        "dp_accounting",
    ]
)


def run(arguments: Sequence[str], out: str) -> None:
    """One command line, its output in a file."""
    from fedsynth.cli import app
    from fedsynth.privacy import curves

    # The accountant as it is in the process of the tests.
    curves.MESH = MESH
    descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(descriptor, stream)
    os._exit(app.run(arguments))


class Command:
    """A command under way."""

    def __init__(self, out: Path, *arguments: object) -> None:
        self.out = out
        texts = [str(one) for one in arguments]
        self.process: ForkServerProcess = CONTEXT.Process(
            target=run, args=(texts, str(out)), daemon=True
        )
        self.process.start()

    @property
    def said(self) -> str:
        return self.out.read_text() if self.out.exists() else ""

    def until(self, holds: Callable[[], bool], *others: Command) -> None:
        """Wait for what this command does; for ever, unless it or another one ends before."""
        while not holds():
            for one in (self, *others):
                assert one.process.is_alive() or holds(), one.said
            time.sleep(0.02)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    def end(self) -> int | None:
        """Wait for its end; its exit code."""
        self.process.join()
        return self.process.exitcode


class Way:
    """Carries connections from a port of its own to wherever they lead now, byte by byte, unless it
    is halted: bytes wait then, and connections stay open, as where a network is partitioned.

    Attributes:
        target: the port that they lead to; None cuts them.
    """

    def __init__(self) -> None:
        self._door = socket.create_server(("localhost", 0))
        self.port = self._door.getsockname()[1]
        self.target: int | None = None
        self._open: list[socket.socket] = []
        self._flows = Event()
        self.flow()
        Thread(target=self._serve, daemon=True).start()

    def lead_to(self, target: int | None) -> None:
        """Let go of what is open; None has nobody come through."""
        self.target = target
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def halt(self) -> None:
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    def close(self) -> None:
        self.flow()
        self.lead_to(None)
        self._door.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                came, _ = self._door.accept()
                try:
                    if self.target is None:
                        raise OSError
                    there = socket.create_connection(("localhost", self.target))
                except OSError:
                    came.close()
                    continue
                self._open += (came, there)
                for pair in ((came, there), (there, came)):
                    Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._flows.wait()
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

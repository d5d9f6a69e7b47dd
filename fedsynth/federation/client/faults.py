"""One client's fault, or its silence, is that client's and nobody else's.

The server is told that a client failed, and of what kind the fault is: one of :data:`KINDS`. What
went wrong, which may speak of records, goes to the client's own log alone (logger
``fedsynth.client``, level INFO).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from threading import Thread

from fedsynth.errors import MachineError, PrivacyError
from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Answer, Incident, Request

KINDS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((MemoryError,), "ran out of memory"),
    ((OSError, MachineError), "could not read or write a file"),
    ((Exception,), "a fault in its own code or data"),
)
"""Of a fault, by the first class here that is its own."""

Respond = Callable[[Sequence[Client], Request], Iterator[Answer]]

_LOG = logging.getLogger("fedsynth.client")


def isolate(
    respond: Respond, clients: Sequence[Client], request: Request, deadline: float | None
) -> Iterator[Answer | Incident]:
    """Answers of clients that have consented, then incidents of those that fail or are late.

    Clients that are asked together are asked one by one from the first that fails. Nothing of it
    has left them, and what they paid stays paid.

    Args:
        respond: answers of clients in their order.
        deadline: seconds that a client may take; it then works in a thread of its own, which is
            left to itself where it takes longer. None: as long as it likes.

    Raises:
        PrivacyError: a task breaks its promise, which no data make it do.
        The first fault, where every client has one: it is no client's then, but fedsynth's.
    """
    answered, faults, late = 0, list[tuple[Client, Exception]](), list[Client]()
    if deadline is None:
        try:
            for message in respond(clients, request) if clients else ():
                answered += 1
                yield message
        except PrivacyError:
            raise
        except Exception as error:
            # That client's alone: a second try would only take its time.
            if answered == len(clients) - 1:
                faults.append((clients[answered], error))
    for client in clients[answered + len(faults) :]:
        try:
            alone = _alone(respond, client, request, deadline)
        except PrivacyError:
            raise
        except Exception as error:
            faults.append((client, error))
            continue
        if alone is None:
            late.append(client)
        else:
            answered += 1
            yield alone
    if faults and not (answered or late):
        raise faults[0][1]
    for client, fault in faults:
        _LOG.info("%s failed in %s, round %d", client.name, *_place(request), exc_info=fault)
        kind = next(words for known, words in KINDS if isinstance(fault, known))
        yield Incident(client.name, request.round, f"failed: {kind}")
    for client in late:
        _LOG.info("%s was late in %s, round %d", client.name, *_place(request))
        yield Incident(client.name, request.round, f"failed: no answer within {deadline:g} s")


def _alone(
    respond: Respond, client: Client, request: Request, deadline: float | None
) -> Answer | None:
    """One client's answer, or its fault; None where it takes longer than the deadline."""
    if deadline is None:
        (message,) = respond([client], request)
        return message
    given: list[Answer | Exception] = []

    def work() -> None:
        try:
            given.extend(respond([client], request))
        except Exception as error:
            given.append(error)

    thread = Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join(deadline)
    if not given:
        client.memory(request.job).busy = thread
        return None
    if isinstance(given[0], Exception):
        raise given[0]
    return given[0]


def _place(request: Request) -> tuple[str, int]:
    return request.task, request.round

"""The tasks a client knows: a request names one, so nothing that a server sends is executed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FederationError, PrivacyError
from fedsynth.federation.client.group import Group
from fedsynth.federation.client.steps import Steps
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.privacy.rows.clipping import Rows


class Task(Protocol):
    """The client half of a method.

    A task sees several clients at once only so that a simulation can batch them. A row may depend
    on its own unit, the request, what was announced and the client's coins, and on nothing else:
    not on other units, their number or its place among them, or removing one would move other rows
    too.

    One that sets ``keeps_order = True`` gives a row for every record of a sample, in the sample's
    order, and where it cuts samples it cuts them by
    :func:`~fedsynth.federation.client.joining.pieces` alone. No other is asked where a unit has
    several records: by its place the door knows whose a row is.
    """

    @property
    def name(self) -> str: ...

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        """Yield (position in ``clients``, rows), not clipped; positions never fall.

        So a client's sum is whole, and can be sent, before the next one's begins.

        Args:
            samples: at the record level the positions of each client's drawn records, one row each
                in all blocks together; at the client level all its records, one row a client.

        A row has ``request.kept + request.dim`` numbers.
        """
        ...


@runtime_checkable
class Keeper(Task, Protocol):
    """A task of which a part of the noisy sum stays at the client (``request.kept``)."""

    def keep(self, client: View, values: NDArray[np.float64], request: Request) -> None:
        """Take back the noisy sum of the ``request.kept`` leading coordinates."""
        ...


@runtime_checkable
class Learner(Protocol):
    """The client half of a method that trains at the client, by DP-SGD."""

    @property
    def name(self) -> str: ...

    def learn(self, steps: Steps, request: Request) -> NDArray[np.float64]:
        """The message, ``request.dim`` numbers, made of the noisy sums that ``steps`` gives alone.

        It may not keep anything that it saw of records inside a contribution.
        """
        ...


@runtime_checkable
class GroupTask(Protocol):
    """The client half of a method whose rows are functions of many records, such as teachers.

    The door assigns records to groups (:mod:`fedsynth.federation.client.groups`), and the task sees
    groups instead of clients. A row may depend on its own group, the request, what was announced
    and coins, and on nothing else.
    """

    @property
    def name(self) -> str: ...

    def group_rows(
        self, groups: Sequence[Group], request: Request
    ) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield (position in ``groups``, row [dim]) for every group once, in their order.

        Rows are nonnegative and not clipped; that of a group without records is public (zeros).
        """
        ...


_TASKS: dict[str, Task | Learner | GroupTask] = {}
T = TypeVar("T", bound=Task | Learner | GroupTask)


def register(task: T) -> T:
    """Make a task known to this installation, under its name.

    Raises:
        PrivacyError: the name is another task's. What a request asks for, and what its terms were
            made for, rests on the name alone.
    """
    if _TASKS.setdefault(task.name, task) is not task:
        raise PrivacyError(
            f"there is a task {task.name!r} already ({type(_TASKS[task.name]).__module__}): give "
            "the new one a name of its own"
        )
    return task


def knows(name: str) -> bool:
    """Whether this installation knows a task of that name."""
    return name in _TASKS


def lookup(name: str) -> Task | GroupTask:
    """A task that gives sums.

    Raises:
        FederationError: a task that this installation does not know, or that gives none.
    """
    task = _known(name)
    if isinstance(task, Learner):
        raise FederationError(f"the task {name!r} trains at its client: it gives no sum")
    return task


def learn(client: View, request: Request) -> NDArray[np.float64]:
    """What a client's own training made of its noisy sums, [dim]: that needs no noise any more.

    Raises:
        FederationError: a task that does not train at its client, or that is not known here.
    """
    task = _known(request.task)
    if not isinstance(task, Learner):
        raise FederationError(
            f"the task {request.task!r} gives sums: it does not train at its client"
        )
    steps = Steps(client, request, keeps_order(task))
    return np.asarray(task.learn(steps, request), np.float64)


def keeps_order(task: Task | Learner | GroupTask) -> bool:
    """Whether a task promises rows in the order of its sample; one that says nothing does not."""
    return getattr(task, "keeps_order", False) is True


def joins(name: str) -> bool:
    """Whether a task may be asked where a unit has several records."""
    return in_groups(name) or keeps_order(_known(name))


def in_groups(name: str) -> bool:
    """Whether a task's rows are of groups of records, of which a unit exchanges one."""
    return isinstance(_known(name), GroupTask)


def _known(name: str) -> Task | Learner | GroupTask:
    if name not in _TASKS:
        raise FederationError(
            f"the server asks for the task {name!r}, which this fedsynth does not know: "
            "install the version that the server runs"
        )
    return _TASKS[name]

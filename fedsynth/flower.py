"""The apps by which a federation that runs Flower runs jobs of fedsynth.

A Flower app names them and holds no code of its own: `serverapp = "fedsynth.flower:server_app"`,
`clientapp = "fedsynth.flower:client_app"`. Each frame of the protocol is one of Flower's messages
(:mod:`fedsynth.federation.runtimes.messages`), and each message a process of its own at its node.

Run config: `job`, the path of a job file at the server; `out`, a new folder; `resume = true` goes
on with the job in `out`; `nodes = "north=123 south=456"` pins owners to nodes; `log`, a file for
what happens; `keys`, the folder of the server's keys, for jobs that go by stream, whose sites are
started by a message each and dial. Node config: `site`, the path of the node's site file.
`insecure = true` in both is for a trial without TLS and node authentication, and voids the
certificate.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedsynth.cli.network import logged
from fedsynth.errors import ConfigError, FedsynthError, MachineError
from fedsynth.federation.runtimes.courier import Parcel
from fedsynth.plain import print_note
from fedsynth.progress import Display

try:
    from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp
except ImportError:
    raise MachineError("apps of Flower need it: pip install 'fedsynth[flower]'") from None

_RECORD, _FRAMES = "fedsynth", "frames"
_RUN = frozenset({"job", "out", "resume", "nodes", "log", "keys", "insecure"})

server_app = ServerApp()
client_app = ClientApp()


class GridMail:
    """Flower's grid as :class:`fedsynth.federation.runtimes.courier.Mail`."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def nodes(self) -> Collection[int]:
        return list(self._grid.get_node_ids())

    def send(self, parcels: Sequence[tuple[int, Parcel]]) -> Sequence[str | None]:
        messages = [
            Message(_packed(parcel), dst_node_id=node, message_type=MessageType.QUERY)
            for node, parcel in parcels
        ]
        if not messages:
            return ()
        names = list(self._grid.push_messages(messages))
        # Of what is too large it says nothing.
        return names if len(names) == len(messages) else [None] * len(messages)

    def fetch(self, names: Collection[str]) -> Iterable[tuple[str, Parcel | None]]:
        for message in self._grid.pull_messages(list(names)):
            found = None if message.has_error() else _unpacked(message)
            yield message.metadata.reply_to_message_id, found


def _packed(parcel: Parcel) -> RecordDict:
    return RecordDict({_RECORD: ConfigRecord({_FRAMES: list(parcel)})})


def _unpacked(message: Message) -> list[bytes] | None:
    """None of what is no parcel."""
    record = message.content.get(_RECORD)
    frames = record.get(_FRAMES) if isinstance(record, ConfigRecord) else None
    if not isinstance(frames, list) or not all(type(one) is bytes for one in frames):
        return None
    return frames


def _serve(grid: Grid, context: Context) -> None:
    """Run a job at the server."""
    # What the other half needs takes its processes longer to import than they work.
    from fedsynth.cli.terminal import show_outcome
    from fedsynth.jobs.config import load_config
    from fedsynth.jobs.serving import by_messages, go_on, serve

    told = context.run_config
    unknown = sorted(set(told) - _RUN)
    if unknown:
        raise ConfigError(f"run config: unknown key {unknown[0]!r}; known are {', '.join(_RUN)}")
    out, insecure = _path(told, "out", "run config"), _is(told, "insecure")
    log = _path(told, "log", "run config") if told.get("log") else None
    carry = by_messages(
        GridMail(grid),
        keys=_path(told, "keys", "run config") if told.get("keys") else None,
        insecure=insecure,
        pinned=_read_nodes(told.get("nodes", "")),
        tell=print_note,
    )
    with logged(log), Display(lines=True) as progress:
        if _is(told, "resume"):
            outcome = go_on(out, carry, progress, progress.caution)
        else:
            loaded = load_config(_path(told, "job", "run config"))
            outcome = serve(*loaded, out, carry, progress, progress.caution)
    show_outcome(outcome)


def _answer(message: Message, context: Context) -> Message:
    """What a node's site says to a message. What goes wrong is told at the node alone: the words
    of an exception would leave it."""
    said: list[bytes] = []
    told = context.node_config
    try:
        from fedsynth.jobs.joining import answer_parcel

        parcel = _unpacked(message)
        if parcel is None:
            raise FedsynthError("the server sent what is no message of fedsynth")
        site, insecure = _path(told, "site", "node config"), _is(told, "insecure")
        with logged(None):
            caution = Display(quiet=True).caution
            said = answer_parcel(site, parcel, caution, print_note, insecure=insecure)
    except FedsynthError as error:
        print_note(f"error: {error}")
    except Exception:
        print_note(traceback.format_exc())
    return Message(_packed(said), reply_to=message)


def _path(told: Mapping[str, Any], key: str, where: str) -> Path:
    """Raises ConfigError for a key that holds no path from the root."""
    value = told.get(key)
    if not isinstance(value, str) or not Path(value).expanduser().is_absolute():
        # What is relative would be to wherever Flower unpacked the app.
        raise ConfigError(f"{where}: `{key}` is to be an absolute path, such as /srv/fedsynth/x")
    return Path(value).expanduser()


def _is(told: Mapping[str, Any], key: str) -> bool:
    value = told.get(key, False)
    if not isinstance(value, bool):
        raise ConfigError(f"`{key}` is to be true or false")
    return value


def _read_nodes(text: object) -> dict[str, int]:
    """Owners' nodes of `north=123 south=456`."""
    nodes = dict[str, int]()
    for pair in str(text).split():
        name, _, number = pair.partition("=")
        if not name or not number.isdecimal() or name in nodes:
            raise ConfigError(
                f"run config: `nodes`: {pair!r} is no OWNER=NODE, with its SuperNode's number"
            )
        nodes[name] = int(number)
    return nodes


server_app.main()(_serve)
client_app.query()(_answer)

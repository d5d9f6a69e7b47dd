"""Hostile files and refusing machines: what is given, and what the command line says of it.

`python -m tests.hostile.cases` prints both tables; the tests run the same cases.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from fedsynth import files
from fedsynth.cli import app as cli
from fedsynth.yaml_files import yaml_text
from tests.small_jobs import SCHEMA, table, write_job

TEXT = yaml_text(SCHEMA)
LAUGHS = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{k}: &a{k} [{','.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 10)
)
IMAGES = (
    "kind: image\nshape: [2, 2]\nmaximum: 255\n"
    "target: {kind: categorical, name: y, values: [0, 1]}\n"
)

Make = Callable[[Path], list[Any]]


def prepare(folder: Path) -> None:
    """A small job and its release, of which every case changes one thing."""
    write_job(folder, table(60), method="mst", settings=None)
    code, _ = call(["run", folder / "job.yaml", "--out", folder / "r", "--quiet"])
    assert code == 0


def call(arguments: list[Any]) -> tuple[int, str]:
    """A command's exit code, and the last line of what it says."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run([str(one) for one in arguments])
    lines = err.getvalue().strip().splitlines()
    return code, lines[-1] if lines else ""


def _after(do: Callable[[Path], Any], arguments: Make) -> Make:
    def make(folder: Path) -> list[Any]:
        do(folder)
        return arguments(folder)

    return make


def _schema(text: str) -> Make:
    def make(folder: Path) -> list[Any]:
        (folder / "s.yaml").write_text(text)
        return ["schema", "check", folder / "table.csv", folder / "s.yaml"]

    return make


def _change(key: str, value: str) -> Make:
    return lambda folder: ["run", folder / "job.yaml", "--set", f"{key}={value}", "--out",
                           folder / "x", "--quiet"]  # fmt: skip


def _table(name: str, body: bytes | Callable[[Path], None], schema: str = "people.yaml") -> Make:
    def make(folder: Path) -> list[Any]:
        if callable(body):
            body(folder / name)
        else:
            (folder / name).write_bytes(body)
        return ["schema", "check", folder / name, folder / schema]

    return make


def _release(name: str, change: Callable[[Path], Any], verb: str = "verify") -> Make:
    """A release of which one file is another; what its certificate says of it goes along."""

    def make(folder: Path) -> list[Any]:
        path = folder / "r" / name
        kept = path.read_bytes() if path.exists() else b""
        path.unlink(missing_ok=True)
        change(path) if not isinstance(change, bytes) else path.write_bytes(change)
        if path.is_file() and path.stat().st_size == 0 and kept:
            path.write_bytes(kept)
        if name != "certificate.json" and path.is_file() and not path.is_symlink():
            content = json.loads((folder / "r" / "certificate.json").read_text())
            if name in content["files"]:
                content["files"][name] = files_sha256(path)
            (folder / "r" / "certificate.json").write_text(json.dumps(content))
        release, out = folder / "r", folder / "more.csv"
        return ["sample", release, "-n", 3, "-o", out] if verb == "sample" else [verb, release]

    return make


def _certificate(change: Callable[[dict[str, Any]], Any]) -> Make:
    """A certificate of which one thing is another, of a job that is resumed."""

    def make(folder: Path) -> list[Any]:
        path = folder / "r" / "certificate.json"
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))
        return ["run", "--resume", folder / "r", "--quiet"]

    return make


def files_sha256(path: Path) -> str:
    from fedsynth.privacy.trail.certificate import sha256

    return sha256(path)


def _write(body: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(body) and None


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _packed(path: Path) -> None:
    with gzip.open(path, "wb") as file:
        for _ in range(40):
            file.write(b"age,colour,income\n" + b"1,red,low\n" * 100_000)


def _lying_npz(path: Path) -> None:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "|u1", "fortran_order": False, "shape": (10**12, 2, 2)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", head.getvalue() + b"\0" * 16)
        archive.writestr("y.npy", head.getvalue())


def _far_cell(path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for name, place in zip(("age", "colour", "income"), ("A1", "B1", "C1"), strict=True):
        book.active[place] = name
    book.active["XFD1048576"] = 1
    book.save(path)


def _lying_parquet(path: Path) -> None:
    import pandas as pd

    pd.DataFrame({"age": np.zeros(1000, np.int64)}).to_parquet(path)
    body = bytearray(path.read_bytes())
    for at in range(len(body) - 400, len(body) - 8):
        body[at] ^= 0x55
    path.write_bytes(body)


def _equal_cells(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_000_000, np.int8)), pa.array(["x"]))
    parquet.write_table(pa.table({"age": column}), path)


_AGES = "upper: 63"
HOSTILE: dict[str, tuple[Make, int]] = {
    "schema: aliases of aliases": (_schema(LAUGHS + TEXT), 3),
    "schema: an alias of itself": (_schema(TEXT + "constraints: &c [*c]\n"), 3),
    "schema: !!int z": (_schema(TEXT.replace(_AGES, "upper: !!int z")), 3),
    "schema: !!float z": (_schema(TEXT.replace(_AGES, "upper: !!float z")), 3),
    "schema: !!timestamp z": (_schema(TEXT.replace(_AGES, "upper: !!timestamp z")), 3),
    "schema: !!python/object": (_schema(TEXT + "name: !!python/object:os.system x\n"), 3),
    "schema: 400 digits": (_schema(TEXT.replace(_AGES, "upper: " + "9" * 400)), 3),
    "schema: 5,000 digits": (_schema(TEXT.replace(_AGES, "upper: " + "9" * 5000)), 3),
    "schema: 2,000 lists deep": (_schema(TEXT + "name: " + "[" * 2000 + "]" * 2000), 3),
    "schema: a kind that is a list": (_schema(TEXT.replace("kind: integer", "kind: [integer]")), 3),
    "schema: a date format of %": (_schema(TEXT + "- {kind: datetime, name: d, lower: 2000-01-01, "
                                   "upper: 2001-01-01, format: '%'}\n"), 3),
    "schema: 9 MB": (_schema(TEXT + "#" * 9_000_000), 3),
    "schema: no UTF-8": (
        _after(lambda f: (f / "s.yaml").write_bytes(b"\xff\xfe\0"),
               lambda f: ["schema", "check", f / "table.csv", f / "s.yaml"]), 3),
    "schema: a device": (lambda f: ["schema", "check", f / "table.csv", "/dev/zero"], 3),
    "schema: a pipe": (
        _after(lambda f: os.mkfifo(f / "pipe"),
               lambda f: ["schema", "check", f / "table.csv", f / "pipe"]), 3),
    "schema: a folder": (lambda f: ["schema", "check", f / "table.csv", f / "r"], 3),
    "job file: a device": (lambda f: ["run", "/dev/zero", "--out", f / "x", "--quiet"], 2),
    "job file: aliases of aliases": (
        _after(lambda f: (f / "j.yaml").write_text(LAUGHS),
               lambda f: ["run", f / "j.yaml", "--out", f / "x", "--quiet"]), 2),
    "--set: !!timestamp q": (_change("settings.bins", "!!timestamp q"), 2),
    "--set: 3,000 brackets": (_change("settings.bins", "[" * 3000), 2),
    "--set: 5,000 digits": (_change("settings.bins", "9" * 5000), 2),
    "--where: 5,000 digits": (lambda f: ["sample", f / "r", "-n", 3, "-o", f / "o.csv", "--where",
                                         "age=" + "9" * 5000 + "..1"], 2),
    "table: a device": (lambda f: ["schema", "check", "/dev/zero", f / "people.yaml"], 3),
    "table: a device called .csv": (_table("t.csv", _device), 3),
    "table: a pipe": (_table("p.csv", os.mkfifo), 3),
    "table: a folder": (_table("f.csv", Path.mkdir), 3),
    "table: .gz of 36 MB (memory: 256 MB)": (_table("b.csv.gz", _packed), 3),
    "table: .gz cut short": (_table("c.csv.gz", gzip.compress(b"age\n" * 9999)[:-20]), 3),
    "table: .xlsx with a cell at XFD1048576": (_table("far.xlsx", _far_cell), 3),
    "table: .parquet with a false foot": (_table("l.parquet", _lying_parquet), 3),
    "table: .parquet of 3 million equal cells (memory: 16 MB)": (
        _table("e.parquet", _equal_cells), 3),
    "table: bytes": (_table("bytes.csv", bytes(range(256)) * 4), 3),
    "table: .parquet of bytes": (_table("b.parquet", bytes(range(256))), 3),
    "images: .npz that claims 4e12 pixels": (_table("l.npz", _lying_npz, "images.yaml"), 3),
    "images: .npz of bytes": (_table("b.npz", b"PK\3\4" + bytes(200), "images.yaml"), 3),
    "certificate: a device": (_release("certificate.json", _device), 6),
    "certificate: a pipe": (_release("certificate.json", os.mkfifo), 6),
    "certificate: a folder": (_release("certificate.json", Path.mkdir), 6),
    "certificate: 100,000 lists deep": (_release("certificate.json", _write(b"[" * 100_000)), 6),
    "certificate: a number": (_release("certificate.json", _write(b"5")), 6),
    "certificate: an epsilon of 400 digits": (
        _certificate(lambda c: c["guarantee"].update(epsilon=10**400)), 6),
    "certificate: does not say whether it is void": (_certificate(lambda c: c.pop("void")), 6),
    "certificate: NaN": (_release("certificate.json", _write(b'{"format": NaN}')), 6),
    "ledger: a folder": (_release("ledger.jsonl", Path.mkdir), 6),
    "ledger: a pipe": (_release("ledger.jsonl", os.mkfifo), 6),
    "ledger: a device": (_release("ledger.jsonl", _device), 6),
    "ledger: 100,000 lists deep": (_release("ledger.jsonl", _write(b"[" * 100_000 + b"\n")), 6),
    "ledger: 10,000 digits": (
        _release("ledger.jsonl", _write(b'{"line":' + b"1" * 10_000 + b"}\n")), 6),
    "model.json: lists": (_release("model.json", _write(b"[" * 100_000), "sample"), 6),
    "model.json: a pipe": (_release("model.json", os.mkfifo, "sample"), 6),
    "weights: a head of 2^60 bytes": (
        _release("model.safetensors", _write(b"\xff" * 7 + b"\x0f{}"), "sample"), 6),
    "weights: a number that is said to be 1e12 long": (
        _release("model.safetensors", _write(
            (head := b'{"a":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4]}}',
             len(head).to_bytes(8, "little") + head + bytes(4))[1]), "sample"), 6),
    "signatures: bytes": (_release("signatures.json", _write(b"\0\1\2")), 6),
    "account: a folder": (
        _after(lambda f: (f / "acc" / "n.jsonl").mkdir(parents=True),
               lambda f: ["account", f / "acc"]), 6),
    "key: a device": (lambda f: ["sign", f / "r", "--key", "/dev/zero"], 2),
}  # fmt: skip
MEMORY = {"256 MB": 256 << 20, "16 MB": 16 << 20}


@contextlib.contextmanager
def _no_space(folder: Path) -> Iterator[None]:
    """No file may have more than 100 bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _refusing(error: BaseException, place: str) -> Callable[[Path], Any]:
    return lambda folder: mock.patch(place, side_effect=error)


def _no_permission(folder: Path) -> Any:
    """As of files of somebody else; root may read them."""
    genuine = os.open

    def refuse(path: Any, *more: Any, **named: Any) -> int:
        if str(path).endswith(("table.csv", "people.yaml")):
            raise PermissionError(13, "Permission denied", str(path))
        return genuine(path, *more, **named)

    return mock.patch("fedsynth.files.os.open", refuse)


def _more(*place: str) -> Make:
    return lambda folder: ["sample", folder / "r", "-n", 50, "-o", Path(folder, *place)]


def _run(*place: str) -> Make:
    return lambda folder: ["run", folder / "job.yaml", "--quiet", "--out", Path(folder, *place)]


_NONE: Callable[[Path], Any] = lambda folder: contextlib.nullcontext()  # noqa: E731
ENVIRONMENT: dict[str, tuple[Make, Callable[[Path], Any], int]] = {
    "sample: into a folder that is not there": (_more("no", "o.csv"), _NONE, 7),
    "sample: below a file": (_more("table.csv", "o.csv"), _NONE, 7),
    "sample: a name of 300 bytes": (_more("x" * 300 + ".csv"), _NONE, 7),
    "sample: onto a full device": (lambda f: ["sample", f / "r", "-n", 50, "-o", f / "full.csv"],
                                   _no_space, 7),
    "sample: too little memory": (
        _more("o.csv"), _refusing(MemoryError(), "fedsynth.data.tables.write_table"), 7),
    "run: below a file": (_run("table.csv", "x"), _NONE, 7),
    "run: a name of 300 bytes": (_run("x" * 300), _NONE, 7),
    "run: the disk is full": (_run("full"), _no_space, 7),
    "run: too little memory": (
        _run("little"), _refusing(MemoryError(), "fedsynth.methods.marginal.mst.MST.learn"), 7),
    "run: a disk that fails": (_run("fails"), _refusing(
        OSError(5, "Input/output error", "f"), "fedsynth.release.write_table"), 7),
    "run: tables that may not be read": (_run("denied"), _no_permission, 7),
    "schema draft: into a folder that is not there": (
        lambda f: ["schema", "draft", f / "table.csv", "-o", f / "no" / "s.yaml"], _NONE, 7),
    "count: into a folder that is not there": (
        lambda f: ["count", f / "r", "age", "-o", f / "no" / "c.csv"], _NONE, 7),
    "key: into a folder that is not there": (lambda f: ["key", f / "no" / "k"], _NONE, 7),
    "sign: the disk is full": (
        _after(lambda f: call(["key", f / "k"]), lambda f: ["sign", f / "r", "--key", f / "k.key"]),
        _no_space, 7),
}  # fmt: skip


def run_hostile(name: str, folder: Path) -> tuple[int, str]:
    """One case, in a folder of its own that :func:`prepare` made."""
    (folder / "images.yaml").write_text(IMAGES)
    told = next((size for word, size in MEMORY.items() if f"memory: {word}" in name), None)
    size = mock.patch.object(files, "memory", lambda: told) if told else contextlib.nullcontext()
    csv = mock.patch("fedsynth.data.csv_files.memory", lambda: told or files.memory())
    tables = mock.patch("fedsynth.data.tables.memory", lambda: told or files.memory())
    with size, csv, tables:
        return call(HOSTILE[name][0](folder))


def run_environment(name: str, folder: Path) -> tuple[int, str]:
    """Likewise."""
    make, refusing, _ = ENVIRONMENT[name]
    arguments = make(folder)
    with refusing(folder):
        return call(arguments)


def main() -> None:
    """Both tables, a JSON object a line."""
    with tempfile.TemporaryDirectory() as base:
        prepare(Path(base, "ready"))
        for kind, cases, run in (
            ("hostile", HOSTILE, run_hostile),
            ("environment", ENVIRONMENT, run_environment),
        ):
            for name in cases:
                folder = Path(base, "case")
                shutil.copytree(Path(base, "ready"), folder)
                start = time.perf_counter()
                code, said = run(name, folder)
                seconds = round(time.perf_counter() - start, 2)
                said = said.replace(f"{folder}/", "")[:200]
                row = {"table": kind, "input": name, "code": code, "expected": cases[name][-1],
                       "seconds": seconds, "message": said}  # fmt: skip
                print(json.dumps(row), flush=True)
                shutil.rmtree(folder)
    sys.stdout.flush()


if __name__ == "__main__":
    main()

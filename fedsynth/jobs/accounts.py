"""Owners' own accounts across jobs: where they lie, and opened for a job."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from fedsynth.errors import Caution, FedsynthError, MachineError
from fedsynth.jobs.clients import Ledgers
from fedsynth.jobs.config import Config
from fedsynth.jobs.inputs import expand_path, origin_of
from fedsynth.jobs.reading import follow
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.ledger import Ledger

FOLDER = "accounts"
"""Beside an owner's table, where the job names no other."""


def ledgers_of(config: Config) -> Ledgers | None:
    """A job's `federation: ledgers`; where owners have a file each they keep accounts anyway."""
    files = None if config.sites is None else config.sites.paths
    told = config.federation.ledgers
    if told is None and files and all(origin_of(one).path is not None for one in files.values()):
        return Ledgers()
    return told


def caution_unkept(config: Config, caution: Caution) -> None:
    """Say of owners by name that nothing counts what is released of them across jobs."""
    files = None if config.sites is None else config.sites.paths
    if files and ledgers_of(config) is None:
        caution(
            "no owner keeps an account across jobs, since rows of one come from a database, beside "
            "which no file can lie: name a folder, federation: {ledgers: {folder: accounts}}, or "
            "nothing counts what is released of the same rows"
        )


def account_files(config: Config, owners: Iterable[str], base: Path) -> dict[str, Path]:
    """The file of each owner's account: in the folder that the job names, or in `accounts` beside
    the owner's table, which every job of that table finds, by whatever folder or link."""
    told = ledgers_of(config)
    if told is None:
        return {}
    files = (config.sites and config.sites.paths) or {}

    def folder(owner: str) -> Path:
        if told.folder is not None:
            return expand_path(told.folder, base)
        named = origin_of(files[owner])
        found, there = follow(named, base)
        # Of a database, beside the owner's file that tells of it.
        table = (str(named.path), base) if found.path is None else (found.path, there)
        place = expand_path(*table).resolve().parent / FOLDER
        here = Path.cwd()
        return place.relative_to(here) if place.is_relative_to(here) else place

    return {owner: folder(owner) / f"{quote(owner, safe='')}.jsonl" for owner in owners}


def open_accounts(config: Config, owners: Iterable[str], base: Path) -> dict[str, Ledger]:
    """Each owner's own account, to be closed; empty where none keeps one.

    Raises:
        PrivacyError: one is in use, or accounts for another unit, or has another limit.
        MachineError: one cannot be written.
    """
    told = ledgers_of(config)
    if told is None:
        return {}
    budget = Budget(
        epsilon=math.inf if told.epsilon is None else told.epsilon,
        delta=told.delta,
        unit=config.privacy.unit,
        # The weakest trust: an owner that agrees to the job's agrees to any stronger one.
        trust="central",
    )
    opened: dict[str, Ledger] = {}
    try:
        for owner, file in account_files(config, owners, base).items():
            opened[owner] = Ledger.of_owner(file, budget)
    except FedsynthError as error:
        for ledger in opened.values():
            ledger.close()
        if told.folder is not None or not isinstance(error, MachineError):
            raise
        raise MachineError(
            f"{error}. Owners' accounts lie beside their tables, unless the job names a folder: "
            "federation: {ledgers: {folder: FOLDER}}"
        ) from None
    return opened

"""A release as Croissant describes data sets: JSON-LD that catalogues and loaders read.

Akhtar et al. (2024), "Croissant: a metadata format for ML-ready datasets", version 1.0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedsynth.errors import ReleaseError
from fedsynth.privacy.trail.certificate import SCHEMA, Certificate
from fedsynth.schema import Schema, load_schema
from fedsynth.schema.columns import Boolean, Column, Continuous, Datetime, Integer

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""As the format has it, whole: loaders compare it."""

_ENCODINGS = {
    ".csv": "text/csv",
    ".parquet": "application/x-parquet",
    ".npz": "application/octet-stream",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".yaml": "application/yaml",
    ".html": "text/html",
    ".safetensors": "application/octet-stream",
}
_ROWS = ("rows.csv", "rows.parquet")


def describe(folder: Path) -> dict[str, Any]:
    """The release's metadata as Croissant 1.0; file names are those within its folder.

    Licence, creators and address are nobody's but the publisher's to say, so they are left out.

    Raises:
        ReleaseError: the folder holds no release, or one without a schema.
    """
    certificate = Certificate.load(folder)
    content = certificate.content
    if SCHEMA not in content["files"]:
        raise ReleaseError(f"{folder}: has no {SCHEMA}, so nothing is known of its columns")
    schema = load_schema(folder / SCHEMA)
    files = dict(sorted(content["files"].items()))
    name = schema.name or "unnamed"
    told = [certificate.sentence, *content["not_covered"], *content["cautions"]]
    described: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"{name}-synthetic",
        "description": " ".join(
            [schema.description or f"Synthetic data of the schema {name}.", *told]
        ),
        "identifier": content["ledger"]["head"],
        **_dated(content.get("date")),
        "distribution": [_file(one, digest) for one, digest in files.items()],
        "rai:personalSensitiveInformation": told,
        "rai:dataManipulationProtocol": (
            f"Synthetic: drawn from a model that fedsynth {content['fedsynth']} trained"
            f"{' by ' + content['method'] if content.get('method') else ''}. "
            "certificate.json says what that cost in privacy, and `fedsynth verify` checks it."
        ),
    }
    rows = next((one for one in _ROWS if one in files), None)
    if rows is not None and isinstance(schema, Schema):
        described["recordSet"] = [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "field": [_field(column, rows) for column in schema.columns],
            }
        ]
    return described


def _dated(day: str | None) -> dict[str, str]:
    """A version is three numbers without leading zeros."""
    if not day:
        return {}
    return {"datePublished": day, "version": ".".join(str(int(part)) for part in day.split("-"))}


def _file(name: str, digest: str) -> dict[str, Any]:
    encoding = _ENCODINGS.get(Path(name).suffix, "application/octet-stream")
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "encodingFormat": encoding,
        "sha256": digest,
    }


def _field(column: Column, rows: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"rows/{column.name}",
        "name": column.name,
        "dataType": _type_of(column),
        "source": {"fileObject": {"@id": rows}, "extract": {"column": column.name}},
    }


def _type_of(column: Column) -> str:
    """Of the cells as they are written: numbers and dates in a spelling of their own are texts."""
    if isinstance(column, Integer | Continuous | Datetime) and column.format is not None:
        return "sc:Text"
    # An integer column with gaps is read as floating-point numbers.
    if isinstance(column, Integer) and not column.missing:
        return "sc:Integer"
    if isinstance(column, Integer | Continuous):
        return "sc:Float"
    if isinstance(column, Datetime):
        return "sc:DateTime"
    return "sc:Boolean" if isinstance(column, Boolean) and not column.missing else "sc:Text"

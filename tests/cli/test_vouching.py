"""`fedsynth verify`, `sign` and `key`."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

FORMAT_1 = Path(__file__).parents[1] / "privacy/verify/format-1"


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    import numpy as np
    import pandas as pd

    import fedsynth as fs

    rng = np.random.default_rng(0)
    tables = [pd.DataFrame({"a": rng.choice(["p", "q"], 40)}) for _ in range(3)]
    schema = fs.Schema(columns=[fs.Categorical(name="a", values=["p", "q"])])
    synth = fs.MST(schema, iterations=5).fit(tables, fs.Budget(epsilon=1.0, delta=1e-5))
    folder = tmp_path_factory.mktemp("vouching") / "release"
    synth.release(folder, synth.sample(5, seed=0))
    return folder


def test_a_release_is_signed_and_verified_by_key_and_head(call, release, tmp_path):
    folder = shutil.copytree(release, tmp_path / "release")
    for name in ("north", "south"):
        code, _, err = call("key", tmp_path / name)
        assert code == 0 and f"{name}.key" in err and f"{name}.pub" in err
    code, _, err = call("sign", folder, "--key", tmp_path / "north.key")
    assert code == 0 and "signed by north" in err
    head = json.loads((folder / "certificate.json").read_text())["ledger"]["head"]
    code, out, _ = call(
        "verify", folder, "--head", head, "--trust", tmp_path / "north.pub", "--json"
    )
    assert code == 0 and json.loads(out)["verified"]
    code, out, err = call("verify", folder, "--trust", tmp_path / "south.pub")
    assert code == 6 and "does not verify: trust" in err
    code, _, err = call("verify", folder, "--head", "0" * 64)
    assert code == 6 and "does not verify: head" in err


def test_a_certificate_is_a_pdf_or_refused_in_words(call, release, tmp_path, monkeypatch):
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "weasyprint", None)
        code, _, err = call("certificate", release, "--pdf", tmp_path / "c.pdf")
        assert code == 2 and "pip install 'fedsynth[pdf]'" in err and "print it" in err
    code, _, err = call("certificate", release, "--pdf", tmp_path / "c.png")
    assert code == 2 and "name a new .pdf file" in err
    try:
        import weasyprint  # noqa: F401
    except (ImportError, OSError):
        pytest.skip("a .pdf takes WeasyPrint and the library Pango")
    code, _, err = call("certificate", release, "--pdf", tmp_path / "c.pdf")
    assert code == 0 and (tmp_path / "c.pdf").read_bytes().startswith(b"%PDF-"), err
    code, _, err = call("certificate", release, "--pdf", tmp_path / "c.pdf")
    assert code == 2 and "exists already" in err


def test_wrong_keys_are_explained(call, release, tmp_path):
    assert call("key", tmp_path / "north")[0] == 0
    code, _, err = call("key", tmp_path / "north")
    assert code == 2 and "exists already" in err
    code, _, err = call("sign", release, "--key", tmp_path / "north.pub")
    assert code == 2 and "no Ed25519 private key" in err
    code, _, err = call("verify", release, "--trust", tmp_path / "nowhere")
    assert code == 2 and "nowhere: cannot be read" in err


@pytest.mark.usefixtures("exact_costs")
def test_nobody_signs_what_does_not_verify_or_binds_no_files(call, release, tmp_path):
    assert call("key", tmp_path / "north")[0] == 0
    folder = shutil.copytree(release, tmp_path / "release")
    (folder / "rows.csv").write_text("a\np\n")
    for path, said in ((folder, "rows.csv"), (FORMAT_1, "earlier fedsynth")):
        code, _, err = call("sign", path, "--key", tmp_path / "north.key")
        assert code == 6 and said in err
        assert not (path / "signatures.json").exists()

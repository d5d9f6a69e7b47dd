"""Who is who between machines: private keys, certificates, and what is read out over a telephone.

A folder has `key.pem` (its user's alone), `certificate.pem` and `ca.pem`, the authority that all go
by. A trial's authority is made here; in earnest it is whoever the owners agree on, who signs the
requests that they make. A certificate is good for one role: a site's cannot stand for the server.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedsynth.durable import make_folder, write_new
from fedsynth.errors import ConfigError
from fedsynth.files import read_plain

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

KEY, CERTIFICATE, AUTHORITY, REQUEST = "key.pem", "certificate.pem", "ca.pem", "request.pem"
TRIAL_DAYS = 30
_LONGEST = 64
"""Letters of a name in a certificate."""


@dataclass(frozen=True)
class Keys:
    """A private key, its certificate, and the authority that both sides go by; PEM.

    Attributes:
        name: that the certificate says.
    """

    name: str
    key: bytes
    certificate: bytes
    authority: bytes


def load_keys(folder: Path) -> Keys:
    """The keys in a folder.

    Raises:
        ConfigError: files are missing, do not belong together, or the certificate has expired.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key, shown, authority = (
        read_plain(folder / name, ConfigError) for name in (KEY, CERTIFICATE, AUTHORITY)
    )
    try:
        certificate = x509.load_pem_x509_certificate(shown)
        x509.load_pem_x509_certificate(authority)
        secret: Any = load_pem_private_key(key, None)
        fits = secret.public_key() == certificate.public_key()
    except (ValueError, TypeError):
        fits = False
    if not fits:
        raise ConfigError(
            f"{folder}: {KEY} (without a password), {CERTIFICATE} and {AUTHORITY} in PEM form do "
            "not belong together: `fedsynth keys` makes them"
        )
    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise ConfigError(
            f"{folder / CERTIFICATE} is good from {certificate.not_valid_before_utc:%Y-%m-%d} to "
            f"{certificate.not_valid_after_utc:%Y-%m-%d}, and today is {now:%Y-%m-%d}: have a new "
            "one made, or set the clock"
        )
    return Keys(_name_in(certificate), key, shown, authority)


def make_trial(folder: Path, owners: Sequence[str], host: str = "localhost") -> list[Path]:
    """Make an authority, and folders of keys for a server and for each owner, good for 30 days.

    Args:
        host: name or address that sites dial.

    Raises:
        ConfigError: the folder exists, or names that are none.
    """
    for name in owners:
        demand_name(name)
    if len({"server", *owners}) <= len(owners):
        raise ConfigError("every owner needs a name of its own, other than `server`")
    if folder.exists():
        raise ConfigError(f"{folder} exists already: name a new folder")
    secret, made = _make_key(), []
    authority = _sign(_subject("fedsynth trial"), secret, None, secret, authority=True)
    for name in ("server", *owners):
        own = _make_key()
        shown = _sign(
            _subject(host if name == "server" else name),
            own,
            authority,
            secret,
            host=host if name == "server" else None,
        )
        place = folder / name
        make_folder(place, private=True)
        _write_key(place / KEY, own)
        for file, body in ((CERTIFICATE, shown), (AUTHORITY, authority)):
            write_new(place / file, _pem(body))
        made.append(place)
    # The authority's own key is not kept: nobody joins a trial that has begun.
    return made


def make_request(folder: Path, name: str, host: str | None = None) -> Path:
    """Make a private key, and a request that an authority signs.

    Args:
        name: that the certificate is to say: an owner's.
        host: of a server's, in place of an owner's name: what sites dial.

    Raises:
        ConfigError: a key is there already, or a name that is none.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    demand_name(name)
    own = _make_key()
    make_folder(folder, private=True)
    _write_key(folder / KEY, own)
    request = x509.CertificateSigningRequestBuilder().subject_name(_subject(name))
    for extension, critical in _role(host):
        request = request.add_extension(extension, critical)
    write_new(folder / REQUEST, _pem(request.sign(own, SHA256())))
    return folder / REQUEST


def fingerprint(path: Path) -> str:
    """SHA-256 of the public key in a certificate or a request, as it is read out.

    Raises:
        ConfigError: it is neither.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization as pem

    body = read_plain(path, ConfigError)
    try:
        made: x509.Certificate | x509.CertificateSigningRequest
        if b"REQUEST" in body:
            made = x509.load_pem_x509_csr(body)
        else:
            made = x509.load_pem_x509_certificate(body)
        key = made.public_key().public_bytes(
            pem.Encoding.DER, pem.PublicFormat.SubjectPublicKeyInfo
        )
    except (ValueError, TypeError):
        raise ConfigError(f"{path}: no certificate or request in PEM form") from None
    found = hashlib.sha256(key).hexdigest()
    return f"{_name_in(made)} SHA256 " + " ".join(found[i : i + 4] for i in range(0, 64, 4))


def demand_name(name: str) -> str:
    """An owner's name. Raises ConfigError for what is none in a certificate, or no folder's."""
    known = name.isprintable() and name.strip() == name and "/" not in name
    if not known or not 0 < len(name) <= _LONGEST or name.startswith("."):
        raise ConfigError(
            f"{name!r:.80} is no owner's name: up to {_LONGEST} letters, without / and not hidden"
        )
    return name


def _name_in(made: x509.Certificate | x509.CertificateSigningRequest) -> str:
    from cryptography.x509.oid import NameOID

    named = made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(named[0].value) if named else ""


def _make_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _subject(name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _role(host: str | None) -> list[tuple[Any, bool]]:
    """What a certificate is good for: a server at a host, or a site."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID as Usage

    if host is None:
        return [(x509.ExtendedKeyUsage([Usage.CLIENT_AUTH]), False)]
    try:
        at: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        at = x509.DNSName(host)
    names = [at]
    if host == "localhost":
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
    return [
        (x509.ExtendedKeyUsage([Usage.SERVER_AUTH]), False),
        (x509.SubjectAlternativeName(names), False),
    ]


def _sign(
    subject: x509.Name,
    own: EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    secret: EllipticCurvePrivateKey,
    *,
    host: str | None = None,
    authority: bool = False,
) -> x509.Certificate:
    """A certificate of a trial; without an issuer its own."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of two machines differ.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=TRIAL_DAYS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    for extension, critical in [] if authority else _role(host):
        made = made.add_extension(extension, critical)
    return made.sign(secret, SHA256())


def _pem(made: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return bytes(made.public_bytes(Encoding.PEM))


def _write_key(path: Path, key: EllipticCurvePrivateKey) -> None:
    from cryptography.hazmat.primitives import serialization as pem

    body = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    write_new(path, body, private=True)

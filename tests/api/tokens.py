"""An issuer of tokens for tests: its keys, its JWKS file, and tokens that are right or wrong in one thing."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from standfast.http import Issuer

ISSUER, AUDIENCE = "https://login.acme.test", "standfast"
_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
_OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
_EC = ec.generate_private_key(ec.SECP256R1())


def pem(key: Any = _RSA) -> bytes:
    """A public key as text."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))


def public(key: Any, kid: str, algorithm: str) -> dict[str, Any]:
    """A public key as JWKS files have it."""
    kind = RSAAlgorithm if algorithm.startswith("RS") else ECAlgorithm
    shown = json.loads(kind.to_jwk(key.public_key()))
    return {**shown, "kid": kid, "alg": algorithm, "use": "sig"}


def key_file(folder: Path) -> Path:
    """The keys of the issuer in a file."""
    file = folder / "jwks.json"
    keys = [public(_RSA, "one", "RS256"), public(_EC, "two", "ES256")]
    file.write_text(json.dumps({"keys": keys}), encoding="utf-8")
    return file


def issuer(folder: Path, **more: Any) -> Issuer:
    """The issuer as a server believes it."""
    told: dict[str, Any] = {"issuer": ISSUER, "audience": AUDIENCE, "jwks": str(key_file(folder))}
    return Issuer(**{**told, "algorithms": ("RS256", "ES256"), "leeway": timedelta(minutes=2), **more})


def claims(**more: Any) -> dict[str, Any]:
    """What a sound token says; None takes a claim away."""
    now = int(time.time())
    sound = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "tenant": "acme", "iat": now, "exp": now + 300}
    return {key: value for key, value in {**sound, **more}.items() if value is not None}


def token(*, key: Any = _RSA, algorithm: str = "RS256", headers: dict[str, Any] | None = None, **more: Any) -> str:
    """A token; sound but for what is given."""
    return jwt.encode(claims(**more), key, algorithm=algorithm, headers={"kid": "one", **(headers or {})})


def other_key() -> Any:
    """A key that the issuer does not have."""
    return _OTHER


def curve_key() -> Any:
    """The issuer's key on a curve."""
    return _EC

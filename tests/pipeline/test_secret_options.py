"""Options that no file and no message may hold are told from their names and values."""

from __future__ import annotations

import pytest

from pgsluice.pipeline.secret_options import is_secret
from pgsluice.pipeline.snapshot import Address, Difference


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "Passwd",
        "pwd",
        "sslkey",
        "passfile",
        "api_key",
        "aws_secret_access_key",
        "apikey",
        "sa_key",
        "access_token",
        "token",
        "client_secret",
        "credentials",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "user",
        "host",
        "password_required",
        "api_key_id",
        "key",
        "partition_key",
        "tokenizer",
        "primary_key",
        "dbname",
    ],
)
def test_names_that_hold_none(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("https://me:pw@host/", True),
        ("host=db password = x", True),
        ("-----BEGIN RSA PRIVATE KEY-----", True),
        ("https://host:80/a@b", False),
        ("https://me@host/", False),
    ],
)
def test_values_of_secrets(value: str, secret: bool) -> None:
    assert is_secret("place", value) is secret


def test_a_difference_shows_no_secret() -> None:
    place = Address("server", ("far",))
    options = {"host": "a", "api_key": "s3cret"}
    assert str(Difference(place, "options", options, {**options, "host": "b"})) == (
        'server far: options is {"host": "b", "api_key": "***"}, expected {"host": "a", "api_key": "***"}'
    )

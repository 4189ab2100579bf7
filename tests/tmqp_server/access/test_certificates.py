"""Which entry a client's certificate stands for."""

from __future__ import annotations

from typing import Any

import pytest

from tmqp_server.access.auth import Admission, Applicant, TableAccess
from tmqp_server.access.certificates import (
    CertificatePatterns,
    PeerCertificate,
    read_peer_certificate,
)
from tmqp_server.access.roles import AccessError, parse_access
from tmqp_server.engine.commands import Credentials

SHOWN = {
    "subject": (
        (("countryName", "DE"),),
        (("organizationName", "Shop, North=West"),),
        (("commonName", "web-1"), ("serialNumber", "7")),
    ),
    "subjectAltName": (
        ("DNS", "web-1.shop.example"),
        ("IP Address", "10.0.0.1"),
        ("URI", "spiffe://shop/web"),
        ("DNS", "www.shop.example"),
    ),
}
CERTIFICATE = read_peer_certificate(SHOWN, "ab" * 32)
ROLES = {"clerk": {"rights": ["push"]}, "boss": {"rights": ["all"]}}


def test_what_is_read_of_a_certificate() -> None:
    assert (
        PeerCertificate(
            "C=DE,O=Shop\\, North\\=West,CN=web-1,serialNumber=7",
            "web-1",
            ("web-1.shop.example", "www.shop.example"),
            ("spiffe://shop/web",),
            "ab" * 32,
        )
        == CERTIFICATE
    )
    assert read_peer_certificate({}, "") == PeerCertificate()


@pytest.mark.parametrize(
    ("patterns", "is_so"),
    [
        ({"subject": ("*CN=web-1*",)}, True),
        ({"subject": ("*cn=web-1*",)}, False),
        ({"dns": ("*.SHOP.example",)}, True),
        ({"dns": ("*.shop.example",), "uri": ("spiffe://shop/*",)}, True),
        ({"dns": ("*.shop.example",), "uri": ("spiffe://bank/*",)}, False),
        ({"dns": ("shop.example", "www.shop.example")}, True),
        ({"fingerprint": ("AB" * 32,)}, True),
        ({"fingerprint": ("cd" * 32,)}, False),
    ],
)
def test_each_kind_of_pattern_that_is_given_must_fit(
    patterns: dict[str, tuple[str, ...]], is_so: bool
) -> None:
    assert CertificatePatterns(**patterns).fits(CERTIFICATE) == is_so
    assert not CertificatePatterns(**patterns).fits(PeerCertificate())


def table(*certificates: dict[str, Any], **more: Any) -> TableAccess:
    return TableAccess(parse_access({"roles": ROLES, "certificates": [*certificates], **more}))


async def name_of(access: TableAccess, applicant: Applicant) -> str | None:
    found = await access.authenticate(applicant)
    assert isinstance(found, Admission | bool)
    return found.data.entry.name if isinstance(found, Admission) else None


async def test_the_first_entry_that_fits_counts_and_credentials_come_before_it() -> None:
    access = table(
        {"name": "boss", "uri": ["spiffe://shop/boss"], "roles": ["boss"]},
        {"name": "web", "dns": ["*.shop.example"], "roles": ["clerk"], "client_ids": ["web-*"]},
        {"name": "any", "subject": ["*"], "roles": ["clerk"]},
        tokens=[
            {"name": "token", "token": "secret", "roles": ["clerk"]},
            {"name": "named", "common_name": "old-1", "roles": ["clerk"]},
        ],
        anonymous={"roles": ["clerk"]},
    )
    shows = Applicant(1, "web-1", certificate=CERTIFICATE)
    assert await name_of(access, shows) == "web"
    assert await name_of(access, Applicant(1, "other", certificate=CERTIFICATE)) is None
    other = PeerCertificate("CN=x", "x")
    assert await name_of(access, Applicant(1, certificate=other)) == "any"
    old = PeerCertificate("CN=old-1", "old-1")
    assert await name_of(access, Applicant(1, common_name="old-1", certificate=old)) == "named"
    assert await name_of(access, Applicant(1)) == "anonymous"
    right, wrong = Credentials("token", "secret"), Credentials("token", "wrong")
    assert await name_of(access, Applicant(1, credentials=right, certificate=other)) == "token"
    assert await name_of(access, Applicant(1, credentials=wrong, certificate=other)) is None


async def test_who_came_by_a_certificate_is_known_after_a_reload() -> None:
    web = {"name": "web", "dns": ["*.shop.example"], "roles": ["clerk"]}
    access = table(web)
    found = await access.authenticate(Applicant(1, certificate=CERTIFICATE))
    assert isinstance(found, Admission)
    access.reload(parse_access({"roles": ROLES, "certificates": [{**web, "roles": ["boss"]}]}))
    assert found.data.roles[0].name == "boss"
    web["dns"] = ["*.bank.example"]
    access.reload(parse_access({"roles": ROLES, "certificates": [web]}))
    assert found.data.entry is None


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (7, "certificates[0] is a table"),
        ({"roles": ["clerk"]}, "needs one of these: subject, dns, uri, fingerprint"),
        ({"dns": ["a*b"], "roles": ["clerk"]}, "certificates[0].dns: a star must be at"),
        ({"dns": "a", "roles": ["clerk"]}, "certificates[0].dns must be a list of strings"),
        ({"dns": ["a"]}, "certificates[0].roles is missing"),
        ({"dns": ["a"], "roles": ["clark"]}, "did you mean clerk?"),
        ({"dns": ["a"], "roles": ["clerk"], "name": ""}, "certificates[0].name must be a string"),
        ({"dnss": ["a"], "roles": ["clerk"]}, "did you mean certificates[0].dns?"),
        ({"fingerprint": ["xy"], "roles": ["clerk"]}, "'xy' is not a SHA-256 fingerprint"),
        ({"fingerprint": ["a" * 65], "roles": ["clerk"]}, "is not a SHA-256 fingerprint"),
    ],
)
def test_what_is_wrong_with_an_entry_is_one_sentence(entry: Any, words: str) -> None:
    with pytest.raises(AccessError) as raised:
        parse_access({"roles": ROLES, "certificates": [entry]})
    assert words in str(raised.value)


def test_a_fingerprint_may_have_colons() -> None:
    entry = {"fingerprint": [":".join(["AB"] * 32)], "roles": ["clerk"]}
    (found,) = parse_access({"roles": ROLES, "certificates": [entry]}).certificates
    assert found.certificate is not None
    assert found.certificate.fits(CERTIFICATE)
    assert found.name == "certificates[0]"

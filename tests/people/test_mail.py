"""Mails, sent to a real server on this machine."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest
import trustme

from standfast import Fail, Mail, Notice
from standfast.kernel.ids import InstanceId
from support.mailing import PASSWORD, MailServer, mail_server

NOTICE = Notice(
    key="run/1/step/email/user:ann",
    tenant="default",
    kind="user",
    to="ann",
    addresses=("ann@example.com",),
    subject="Order 7",
    body="Zoë has ordered.\n",
    instance=InstanceId(UUID(int=7)),
    definition="order",
    step=1,
    node="tell",
    at=datetime(2030, 1, 1, 12, tzinfo=UTC),
)


def notice(**fields: object) -> Notice:
    """A notice with something else in it."""
    return msgspec.structs.replace(NOTICE, **fields)


@pytest.fixture
def server() -> Iterator[MailServer]:
    """A server that asks nobody for a name."""
    with mail_server() as server:
        yield server


def mail(server: MailServer, **options: object) -> Mail:
    """The channel to that server."""
    settings = {"sender": "Orders <orders@example.com>", "port": server.port, "tls": "none", **options}
    return Mail("127.0.0.1", **settings)  # type: ignore[arg-type]


@pytest.mark.row("EH-13")
def test_a_mail_says_what_the_notice_says(server: MailServer) -> None:
    """Subject, body, sender, recipient and date arrive as they are."""
    mail(server).send(NOTICE)
    (sent,) = server.mails
    assert (sent.sender, sent.recipients) == ("orders@example.com", ["ann@example.com"])
    assert (sent.message["Subject"], sent.message["From"]) == ("Order 7", "Orders <orders@example.com>")
    assert sent.message["To"] == "ann@example.com"
    assert sent.message["Auto-Submitted"] == "auto-generated"
    assert sent.message["Date"].datetime == NOTICE.at
    assert sent.message.get_content().replace("\r\n", "\n") == NOTICE.body
    assert sent.message.get_content_type() == "text/plain"


def test_html_is_a_part_of_its_own(server: MailServer) -> None:
    """Whoever cannot show HTML shows the plain body."""
    mail(server).send(notice(html="<b>Zoë</b>"))
    message = server.mails[0].message
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    html = message.get_body(("html",))
    assert html is not None
    assert html.get_content().strip() == "<b>Zoë</b>"


def test_the_same_mail_again_has_the_same_id_and_another_one_another(server: MailServer) -> None:
    """Mailboxes can tell a repeated mail by its id."""
    channel = mail(server)
    for each in (NOTICE, NOTICE, notice(key="another"), notice(addresses=("bob@example.com",))):
        channel.send(each)
    ids = [each.message["Message-ID"] for each in server.mails]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


def test_each_address_gets_a_mail_of_its_own(server: MailServer) -> None:
    """Nobody sees who else was told."""
    mail(server).send(notice(addresses=("ann@example.com", "bob@example.com")))
    assert [each.recipients for each in server.mails] == [["ann@example.com"], ["bob@example.com"]]
    assert [each.message["To"] for each in server.mails] == ["ann@example.com", "bob@example.com"]


@pytest.mark.parametrize(
    "subject",
    ["Hi\r\nBcc: eve@example.com", "Hi\nBcc: eve@example.com", "Hi\r\n\r\n<script>", "Hi\x0bBcc: eve@example.com"],
)
def test_no_subject_becomes_a_header(server: MailServer, subject: str) -> None:
    """Whatever the data puts into a subject stays in it."""
    mail(server).send(notice(subject=subject))
    (sent,) = server.mails
    assert sent.recipients == ["ann@example.com"]
    assert sent.message["Bcc"] is None
    assert sent.message["Subject"] == " ".join(subject.split())


@pytest.mark.parametrize(
    "address",
    [
        "ann@example.com\r\nBcc: eve@example.com",
        "ann@example.com, eve@example.com",
        "<ann@example.com>",
        "ann",
        "a b@c.d",
        "@c.d",
    ],
)
def test_what_is_no_plain_address_is_never_written_to(server: MailServer, address: str) -> None:
    """An address that could mean more than one is refused for good, and the others get their mail."""
    with pytest.raises(Fail, match="no mail could be sent"):
        mail(server).send(notice(addresses=(address, "bob@example.com")))
    assert [each.recipients for each in server.mails] == [["bob@example.com"]]


def test_an_address_that_will_never_take_it_is_told_once_the_others_have_it(server: MailServer) -> None:
    """A permanent refusal is final; it does not keep anybody else from being told."""
    server.answers["ann@example.com"] = ["550 no such mailbox"]
    with pytest.raises(Fail, match=r"'ann@example\.com'"):
        mail(server).send(notice(addresses=("ann@example.com", "bob@example.com")))
    assert [each.recipients for each in server.mails] == [["bob@example.com"]]


def test_a_server_that_asks_for_patience_is_asked_again(server: MailServer) -> None:
    """A temporary refusal is an error after which it is tried again, and then it is taken."""
    server.answers["ann@example.com"] = ["451 later, please"]
    with pytest.raises(smtplib.SMTPRecipientsRefused):
        mail(server).send(NOTICE)
    mail(server).send(NOTICE)
    assert len(server.mails) == 1


def test_nobody_listens() -> None:
    """A server that is away is an error after which it is tried again, not a final one."""
    with mail_server() as server:
        channel = mail(server)
    with pytest.raises(ConnectionRefusedError):
        channel.send(NOTICE)


def test_somebody_signs_in() -> None:
    """Name and password are shown to a server that asks for them; a wrong password can be set right, so it is not final."""
    with mail_server(must_sign_in=True) as server:
        mail(server, user="orders", password=lambda: PASSWORD).send(NOTICE)
        with pytest.raises(smtplib.SMTPAuthenticationError):
            mail(server, user="orders", password=lambda: "wrong").send(NOTICE)
        with pytest.raises(smtplib.SMTPException):
            mail(server).send(NOTICE)
    assert [each.user for each in server.mails] == ["orders"]


def test_the_line_is_encrypted_before_anything_is_said() -> None:
    """With `starttls` the server sees the mail on an encrypted line; a certificate that nobody trusts is refused, and nothing is sent."""
    authority = trustme.CA()
    encrypted, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(encrypted)
    authority.configure_trust(trusting)
    with mail_server(starttls=encrypted) as server:
        mail(server, tls="starttls", context=trusting).send(NOTICE)
        with pytest.raises(ssl.SSLCertVerificationError):
            mail(server, tls="starttls").send(NOTICE)
    assert [each.is_encrypted for each in server.mails] == [True]


def test_a_server_that_cannot_encrypt_gets_nothing(server: MailServer) -> None:
    """`starttls` is no wish: without it no mail is sent."""
    with pytest.raises(smtplib.SMTPNotSupportedError):
        mail(server, tls="starttls").send(NOTICE)
    assert server.mails == []

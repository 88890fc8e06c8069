"""A mail server of the test's own: a real one, on a port of this machine."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP as POLICY
from typing import NamedTuple

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

PASSWORD = "open sesame"


class Mail(NamedTuple):
    """What the server has taken."""

    sender: str
    recipients: list[str]
    message: EmailMessage
    user: str
    is_encrypted: bool


class MailServer:
    """Takes mails, but for those to whom the test has it say no."""

    def __init__(self) -> None:
        self.mails: list[Mail] = []
        self.answers: dict[str, list[str]] = {}
        """What it answers to an address, one time after the other, before it takes mails for it."""
        self.port = 0

    async def handle_RCPT(  # noqa: N802, PLR0917 - so the server calls it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Whether it takes mails for an address."""
        waiting = self.answers.get(address, [])
        if waiting:
            return waiting.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - so the server calls it
        """Take a mail."""
        message = message_from_bytes(envelope.original_content or b"", policy=POLICY)
        user = bytes(getattr(session.auth_data, "login", b"")).decode()
        self.mails.append(
            Mail(envelope.mail_from or "", list(envelope.rcpt_tos), message, user, session.ssl is not None)
        )
        return "250 taken"


class _Plain(Controller):
    """Listens on whatever port is free."""

    def factory(self) -> SMTP:
        with warnings.catch_warnings():  # Of passwords on a line that is not encrypted: it does not leave this machine.
            warnings.simplefilter("ignore", UserWarning)
            made = super().factory()  # type: ignore[no-untyped-call]
        assert isinstance(made, SMTP)
        return made

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        super()._trigger_server()  # type: ignore[no-untyped-call]


def _sign_in(_server: object, _session: object, _envelope: object, _mechanism: str, data: object) -> AuthResult:
    is_right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
    return AuthResult(success=is_right, handled=False, auth_data=data)


@contextmanager
def mail_server(*, starttls: ssl.SSLContext | None = None, must_sign_in: bool = False) -> Iterator[MailServer]:
    """A server that runs for as long as it is needed."""
    server = MailServer()
    controller = _Plain(
        server,
        hostname="127.0.0.1",
        port=0,
        tls_context=starttls,
        authenticator=_sign_in,
        auth_required=must_sign_in,
        auth_require_tls=False,
    )
    controller.start()
    server.port = controller.port
    try:
        yield server
    finally:
        controller.stop()

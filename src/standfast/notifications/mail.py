"""The channel for e-mail, by SMTP."""

from __future__ import annotations

import hashlib
import re
import smtplib
import ssl
from collections.abc import Callable
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final, Literal

from standfast.engine.common.handlers import Fail
from standfast.notifications.notification import Notice

Tls = Literal["starttls", "tls", "none"]

_ADDRESS: Final = re.compile(r"[^\s@<>,;:\"()\[\]\\]{1,64}@[A-Za-z0-9.\-]{1,255}")
"""Plain addresses only: no address can contain another header, another recipient or a comment."""
_PERMANENT = 500
"""SMTP replies from this number on are permanent failures."""
_SIGN_IN = 530, 534, 535, 538
"""Except those about authentication, which an operator can fix."""


class Mail:
    """Sends each address a message of its own, all of a notice in one session.

    A resent message has the same Message-ID, because the first attempt may have been delivered.
    """

    needs_address = True

    def __init__(
        self,
        host: str,
        *,
        sender: str,
        port: int = 587,
        user: str = "",
        password: Callable[[], str] = str,
        tls: Tls = "starttls",
        timeout: float = 10.0,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._sender = sender
        self._user = user
        self._password = password
        self._tls = tls
        self._timeout = timeout
        self._context = context

    def send(self, notice: Notice) -> None:
        """Send to all addresses; permanent failures are raised once all other addresses have it."""
        refused = [each for each in notice.addresses if not _ADDRESS.fullmatch(each)]
        with self._session() as session:
            for address in notice.addresses:
                if address not in refused and not _take(session, self._message(notice, address)):
                    refused.append(address)
        if refused:
            raise Fail(f"no mail could be sent to {', '.join(map(repr, refused))}")

    def _session(self) -> smtplib.SMTP:
        context = self._context or ssl.create_default_context()
        if self._tls == "tls":
            session: smtplib.SMTP = smtplib.SMTP_SSL(self._host, self._port, timeout=self._timeout, context=context)
        else:
            session = smtplib.SMTP(self._host, self._port, timeout=self._timeout)
        try:
            if self._tls == "starttls":
                session.starttls(context=context)
            if self._user:
                session.login(self._user, self._password())
        except BaseException:
            session.close()
            raise
        return session

    def _message(self, notice: Notice, address: str) -> EmailMessage:
        message = EmailMessage()
        message["Subject"] = " ".join(notice.subject.split())
        message["From"] = self._sender
        message["To"] = address
        message["Date"] = format_datetime(notice.at)
        message["Message-ID"] = f"<{hashlib.sha256(f'{notice.key} {address}'.encode()).hexdigest()}@standfast>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(notice.body or notice.subject)
        if notice.html:
            message.add_alternative(notice.html, subtype="html")
        return message


def _take(session: smtplib.SMTP, message: EmailMessage) -> bool:
    """Return whether the server has taken a message; False for a permanent failure."""
    try:
        session.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        if any(code < _PERMANENT for code, _ in error.recipients.values()):
            raise
        return False
    except smtplib.SMTPResponseException as error:
        if error.smtp_code < _PERMANENT or error.smtp_code in _SIGN_IN:
            raise
        return False
    return True

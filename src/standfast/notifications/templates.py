"""Notification templates by occasion, channel and language, and the users' preferences."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Literal, NamedTuple

import msgspec

from standfast.kernel.codec.type_cache import settled
from standfast.kernel.people import PREFERENCES, Principal
from standfast.notifications.notification import Notice

Occasion = Literal["opened", "handed", "reminded", "escalated", "step", "rule"]
"""The occasion of a notice: a task is opened, handed over, reminded of or escalated; or a step or rule sends it."""

ANY: Final = "*"
HOLES: Final = ("subject", "body", "to", "definition")
_HOLE: Final = re.compile(r"\{(\w*)\}")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", re.ASCII)
_LONGEST: Final = 20_000


class NotificationWording(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A template.

    `{subject}` and `{body}` are the notice's own text, `{to}` the recipient and `{definition}` the workflow.
    """

    subject: str = "{subject}"
    body: str = "{body}"
    html: str = ""
    """For channels that show HTML; values are escaped in it."""


class NotificationTemplates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The notification settings of an organisation, under `notices` of its settings."""

    language: str = "en"
    """The language of recipients without a preference."""
    templates: dict[Occasion, dict[str, dict[str, NotificationWording]]] = {}
    """By occasion, by channel (`*` for all others), by language."""
    mandatory: list[Occasion] = []
    """Occasions that recipients cannot turn off."""

    def wording(self, occasion: str, channel: str, language: str) -> NotificationWording | None:
        """Return the best template: the channel before `*`, the language before the organisation's."""
        of_occasion: Mapping[str, dict[str, NotificationWording]] = self.templates.get(occasion, {})  # type: ignore[call-overload]
        for by_language in (of_occasion.get(channel, {}), of_occasion.get(ANY, {})):
            for each in (language, language.partition("-")[0], self.language):
                if each in by_language:
                    return by_language[each]
        return None

    def flaws(self) -> Iterator[str]:
        """Return the mistakes in the templates, each as a sentence."""
        if not _LANGUAGE.fullmatch(self.language):
            yield f"the language {self.language!r} is none; give one such as 'en' or 'de-CH'"
        for occasion, by_channel in self.templates.items():
            for channel, by_language in by_channel.items():
                for language, each in by_language.items():
                    where = f"the template of {occasion!r} for {channel!r} in {language!r}"
                    if not _LANGUAGE.fullmatch(language):
                        yield f"{where}: this is no language; give one such as 'en' or 'de-CH'"
                    yield from (f"{where} {flaw}" for flaw in _flaws_of(each))


class NotificationPreferences(NamedTuple):
    """A user's notification preferences."""

    language: str = ""
    off: frozenset[str] = frozenset()
    """Channels that the user has turned off."""


def _flaws_of(wording: NotificationWording) -> Iterator[str]:
    for text in (wording.subject, wording.body, wording.html):
        if len(text) > _LONGEST:
            yield f"has {len(text)} characters; write at most {_LONGEST}"
        unknown = sorted(set(_HOLE.findall(text)) - {*HOLES})
        if unknown:
            yield f"has holes for {', '.join(unknown)}; there are {', '.join(HOLES)}"
    if "\n" in wording.subject:
        yield "has a subject of several lines; write one"


def manners_of(settings: Mapping[str, object]) -> tuple[NotificationTemplates | None, list[str]]:
    """Return the templates in the settings, None if there are none, and their mistakes."""
    given = settings.get("notices")
    if given is None:
        return None, []
    try:
        found = msgspec.convert(given, settled(NotificationTemplates))
    except msgspec.ValidationError as error:
        return None, [f"the notification settings cannot be read: {error}"]
    flaws = list(found.flaws())
    return (None if flaws else found), flaws


def wants_of(person: Principal | None) -> NotificationPreferences:
    """Read a user's preferences from the directory; unreadable ones count as none."""
    said = None if person is None else person.attributes.get(PREFERENCES)
    if not isinstance(said, Mapping):
        return NotificationPreferences()
    language, off = said.get("language", ""), said.get("off", ())
    names = off if isinstance(off, list | tuple) else ()
    return NotificationPreferences(
        language if isinstance(language, str) else "", frozenset(each for each in names if isinstance(each, str))
    )


def is_language(given: object) -> bool:
    """Return whether a text is a language tag or empty."""
    return isinstance(given, str) and (not given or bool(_LANGUAGE.fullmatch(given)))


def occasion_of(key: str) -> str:
    """Return the occasion, from the key of a notice."""
    return key.split("/")[1].partition(":")[0] if key.count("/") > 1 else ""


def reworded(notice: Notice, wording: NotificationWording | None) -> Notice:
    """Return a notice in the organisation's wording."""
    if wording is None:
        return notice
    values = {"subject": notice.subject, "body": notice.body, "to": notice.to, "definition": notice.definition}
    escaped = {name: html.escape(value) for name, value in values.items()}
    return msgspec.structs.replace(
        notice,
        subject=" ".join(_filled(wording.subject, values).split()),
        body=_filled(wording.body, values),
        html=_filled(wording.html, escaped) if wording.html else notice.html,
    )


def is_muted(wants: NotificationPreferences, channel: str, occasion: str, mandatory: Collection[str]) -> bool:
    """Return whether a user has muted a notice."""
    return channel in wants.off and occasion not in mandatory


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _HOLE.sub(lambda hole: values[hole[1]], text)

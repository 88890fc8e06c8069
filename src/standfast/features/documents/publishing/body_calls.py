"""Calls of bodies: what an organisation puts into the slots of its documents, from a draft to what is in force."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec

from standfast.calls.authorization import check_unbound
from standfast.calls.context import CallContext, checked_flag, checked_key, checked_text
from standfast.engine.concurrency.replies import Reply
from standfast.errors import NotFoundError, PayloadError
from standfast.features.documents.body.format import Body, export_yaml
from standfast.features.documents.body.templates import instantiate, read_template, template_names
from standfast.features.documents.compiler.compiler import rebased
from standfast.features.documents.compiler.workflow_diff import Difference, diff
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.publishing.catalog import (
    Catalog,
    WrittenBody,
    body_of,
    checked_version,
    contract_of,
    draft_of,
)
from standfast.features.documents.publishing.publisher import Publisher, draft_changed
from standfast.features.documents.publishing.rejections import DESIGN, GOVERN, PUBLISH, permit
from standfast.features.documents.publishing.release import Release, rehearsed, tried_out, written_body
from standfast.features.documents.publishing.views import (
    BodyCheck,
    BodyDraft,
    BodyTemplate,
    BodyVersion,
    PublishingRules,
    body_draft,
    body_template,
)
from standfast.features.documents.scenarios.scenarios import ScenarioResult
from standfast.features.simulation import DryRun
from standfast.machine.model.queries.authorization import READ
from standfast.store.ports.documents import PublishingRule, StoredBlueprint

BodyLike = str | bytes | Body | Mapping[str, object]
"""A body as YAML or JSON, as what `read_body` gives, or as plain data."""
_READERS: Final = (READ, DESIGN, PUBLISH)


class FutureBodies:
    """What can be asked of an organisation's bodies, drafted and published.

    Drafting takes the capability `bodies:design`, publishing and archiving `bodies:publish`; to publish steps that act in the name of
    the engine or of a service account takes `bodies:run_as` too. Reading takes one of these, or `execution:read`.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    # -- templates

    def templates(self) -> Reply[builtins.list[BodyTemplate]]:
        """The templates that come with the package, with what can be said to each."""
        return self._desk.read(lambda: [body_template(read_template(each)) for each in template_names()])

    def instantiate(
        self,
        template: str,
        params: Mapping[str, str | int] | None = None,
        *,
        type: str = "",  # noqa: A002 - the word that everybody uses for it
        comment: str = "",
    ) -> Reply[BodyDraft]:
        """Begin a draft from a template, for the newest envelope of its type, or of another type with the same slots."""

        def write() -> BodyDraft:
            desk = self._permitted(DESIGN, what="draft bodies")
            made, shelf = read_template(checked_key(template, "template")), Catalog(desk)
            wanted = checked_key(type, "type", may_be_empty=True) or made.entity_type
            version = shelf.newest_contract(wanted).envelope_version
            body = instantiate(made, _params(params), entity_type=wanted, envelope_version=version)
            return _begun(desk, written_body(body), checked_text(comment, "comment"))

        return self._desk.act(write)

    # -- drafts

    def save(
        self, body: BodyLike, *, draft: str = "", revision: int | None = None, comment: str = ""
    ) -> Reply[BodyDraft]:
        """Save a draft: a new one, or the next revision of one that is there. What is wrong with it comes with the answer, and is saved too.

        Also one whose form has mistakes is saved, such as a node of an unknown type: then `body` is None, and `source` is what was written.
        DefinitionError if it does not even say what it is for. `revision` is the one that the caller has seen: if there is another by now,
        `DRAFT_CHANGED`. An exported file is taken as it is; one that was changed since is refused until its `hash` is removed.
        """

        def write() -> BodyDraft:
            desk = self._permitted(DESIGN, what="draft bodies")
            given, text = written_body(body), checked_text(comment, "comment")
            if not draft:
                return _begun(desk, given, text)
            shelf = Catalog(desk)
            row = _open(shelf.draft_row(draft))
            seen = row.revision if revision is None else checked_version(revision, "revision", least=1)
            if seen != row.revision:
                raise draft_changed(msgspec.structs.replace(row, revision=seen))
            wanted = given.body.base.entity_type
            if wanted != row.type:
                raise PayloadError(f"the draft is for {row.type!r}, and the body for {wanted!r}; begin another")
            return _drafted(shelf, Publisher(desk, desk.tenant).save(row, given, comment=text), given)

        return self._desk.act(write)

    def drafts(self, type: str = "") -> Reply[builtins.list[BodyDraft]]:  # noqa: A002 - see instantiate
        """The open drafts, of one type or of all, oldest first."""

        def read() -> builtins.list[BodyDraft]:
            shelf = Catalog(self._permitted(*_READERS, what="look at bodies"))
            rows = shelf.bodies(checked_key(type, "type", may_be_empty=True))
            return [body_draft(each) for each in rows if each.status == "draft"]

        return self._desk.read(read)

    def draft(self, draft: str) -> Reply[BodyDraft]:
        """One draft, with everything that is wrong with it."""

        def read() -> BodyDraft:
            shelf = Catalog(self._permitted(*_READERS, what="look at bodies"))
            row = _open(shelf.draft_row(draft))
            return _drafted(shelf, row, draft_of(row))

        return self._desk.read(read)

    def discard(self, draft: str) -> Reply[None]:
        """Forget a draft."""

        def write() -> None:
            desk = self._permitted(DESIGN, what="discard drafts")
            Publisher(desk, desk.tenant).discard(_open(Catalog(desk).draft_row(draft)))

        return self._desk.act(write)

    def rebase(self, type: str) -> Reply[BodyDraft]:  # noqa: A002 - see instantiate
        """Begin a draft of the body in force for the newest envelope; what does not fit there any more comes with the answer."""

        def write() -> BodyDraft:
            desk = self._permitted(DESIGN, what="draft bodies")
            shelf = Catalog(desk)
            row = shelf.body_row(type, 0)
            newest = generate_envelope(contract_of(shelf.newest_contract(row.type)))
            return _begun(desk, written_body(rebased(body_of(row), newest)), f"rebased from version {row.version}")

        return self._desk.act(write)

    def check(self, body: BodyLike) -> Reply[BodyCheck]:
        """Everything that is wrong with a body, and the scenarios that fail; nothing is stored."""

        def read() -> BodyCheck:
            shelf = Catalog(self._permitted(*_READERS, what="look at bodies"))
            given = written_body(body)
            text = body if isinstance(body, str | bytes) else given.source or None
            found = shelf.check(given.body, text)
            return found if found.problems else msgspec.structs.replace(found, failures=rehearsed(shelf, given.body))

        return self._desk.read(read)

    # -- what is in force

    def publish(
        self, draft: str, *, revision: int | None = None, replaces: int | None = None, comment: str = ""
    ) -> Reply[BodyVersion]:
        """Publish a draft: it is compiled, its scenarios are played, and from then on new documents go through it; it never changes again.

        The version before is archived; documents that began with it keep it. DefinitionError with everything that is wrong, and with
        every scenario that fails. `revision` is the one that the caller has reviewed: if there is another by now, `DRAFT_CHANGED`. `replaces` is the version that is in force as the caller knows it; without it, the one that was when
        the draft was begun: if another was published meanwhile, `BODY_SUPERSEDED`. Where the organisation wants two people, nobody
        publishes what they drafted, and whoever publishes gives `revision` (`REVISION_REQUIRED`).
        """

        def write() -> BodyVersion:
            desk = self._permitted(PUBLISH, what="publish bodies")
            press = Release(desk)
            row = _open(press.shelf.draft_row(draft))
            seen = None if replaces is None else checked_version(replaces, "version that it replaces")
            read = None if revision is None else checked_version(revision, "revision", least=1)
            return press.publish(row, revision=read, replaces=seen, comment=checked_text(comment, "comment"))

        return self._desk.act(write)

    def rollback(self, type: str, version: int, *, comment: str = "") -> Reply[BodyVersion]:  # noqa: A002 - see instantiate
        """Publish an older version again, as a new one. Where the organisation wants two people, draft it and have somebody else publish it."""

        def write() -> BodyVersion:
            desk = self._permitted(PUBLISH, what="publish bodies")
            press = Release(desk)
            wanted = press.shelf.body_row(type, checked_version(version, least=1))
            return press.roll_back(wanted, checked_text(comment, "comment"))

        return self._desk.act(write)

    def archive(self, type: str, reason: str = "") -> Reply[BodyVersion]:  # noqa: A002 - see instantiate
        """Take the body in force out of force: no document begins any more until one is published; those that have begun go on."""

        def write() -> BodyVersion:
            desk = self._permitted(PUBLISH, what="archive bodies")
            name, shelf = checked_key(type, "type"), Catalog(desk)
            former = Publisher(desk, desk.tenant).archive(name, checked_text(reason, "reason"))
            if former is None:
                raise NotFoundError(
                    "body", f"{name} in force", hint="`bodies.versions` lists those that were published"
                )
            return shelf.version_of(shelf.body_row(name, former.version))

        return self._desk.act(write)

    def recompile(self, type: str = "", *, dry_run: bool = False) -> Reply[builtins.list[BodyVersion]]:  # noqa: A002 - see instantiate
        """Compile again what was compiled by an older version of the compiler; those that were, or with `dry_run` would be.

        Each becomes a new version of the workflow, for new documents. What a newer compiler made, and what is taken out of use
        (`workflows.suspend`), is left alone; so is what somebody publishes or archives meanwhile.
        """

        def write() -> builtins.list[BodyVersion]:
            desk = self._permitted(PUBLISH, what="compile bodies")
            name = checked_key(type, "type", may_be_empty=True)
            return Release(desk).recompile(name, is_dry=checked_flag(dry_run, "`dry_run`"))

        return self._desk.act(write)

    def list(self) -> Reply[builtins.list[BodyVersion]]:
        """The bodies in force, by type."""
        return self._desk.read(lambda: self._versions("", status="published"))

    def versions(self, type: str) -> Reply[builtins.list[BodyVersion]]:  # noqa: A002 - see instantiate
        """All versions of a type's body, oldest first."""
        return self._desk.read(lambda: self._versions(checked_key(type, "type")))

    def get(self, type: str, version: int = 0) -> Reply[BodyVersion]:  # noqa: A002 - see instantiate
        """One version of a body, the one in force if none is given."""

        def read() -> BodyVersion:
            shelf, row = self._found(type, version)
            return shelf.version_of(row)

        return self._desk.read(read)

    def diff(self, type: str, version: int = 0, *, against: int | None = None, draft: str = "") -> Reply[Difference]:  # noqa: A002 - see instantiate
        """What a version, the one in force if none is given, or a draft changes, slot by slot: beside the bare envelope, or another version."""

        def read() -> Difference:
            shelf = Catalog(self._permitted(*_READERS, what="look at bodies"))
            if draft:
                body = body_of(_open(shelf.draft_row(draft)))
                new = shelf.compiled(shelf.envelope_for(body), body)
            else:
                new = shelf.effective_of(shelf.body_row(type, checked_version(version)))
            if against is None:
                return diff(shelf.compiled(generate_envelope(new.contract), None), new)
            return diff(shelf.effective_of(shelf.body_row(type, checked_version(against, least=1))), new)

        return self._desk.read(read)

    def export(self, type: str = "", version: int = 0, *, draft: str = "") -> Reply[str]:  # noqa: A002 - see instantiate
        """A version of a body, or a draft, as YAML with its hash, to be reviewed and kept in git; `save` takes it back."""

        def read() -> str:
            shelf = Catalog(self._permitted(*_READERS, what="look at bodies"))
            row = _open(shelf.draft_row(draft)) if draft else shelf.body_row(type, checked_version(version))
            written = draft_of(row)
            return written.source or export_yaml(written.body)

        return self._desk.read(read)

    # -- trying out

    def scenarios(self, type: str = "", version: int = 0, *, draft: str = "") -> Reply[builtins.list[ScenarioResult]]:  # noqa: A002 - see instantiate
        """Play the scenarios of a version, or of a draft: pure, with time of their own; nothing is written."""

        def read() -> builtins.list[ScenarioResult]:
            shelf = Catalog(self._permitted(*_READERS, what="look at bodies"))
            row = _open(shelf.draft_row(draft)) if draft else shelf.body_row(type, checked_version(version))
            return tried_out(shelf, body_of(row))

        return self._desk.read(read)

    def dry_run(  # noqa: PLR0913 - all that can be supposed, by name
        self,
        type: str,  # noqa: A002 - see instantiate
        data: Mapping[str, object] | None = None,
        *,
        document: str = "",
        draft: str = "",
        decisions: Mapping[str, str | Sequence[str]] | None = None,
        forms: Mapping[str, object] | None = None,
        answers: Mapping[str, object] | None = None,
        failing: Sequence[str] = (),
        events: Mapping[str, object] | None = None,
        unanswered: Sequence[str] = (),
    ) -> Reply[DryRun]:
        """Which way a document would take, with this content, or as one that is there has it: through what is in force, or through a draft.

        What is supposed of the world is said as in `definitions.dry_run`. Rules and people are not looked up. Nothing is written.
        """

        def read() -> DryRun:
            desk = self._permitted(*_READERS, what="try documents out")
            return Release(desk).dry_run(
                checked_key(type, "type"),
                data,
                document=checked_key(document, "document id", may_be_empty=True),
                draft=checked_key(draft, "id of a draft", may_be_empty=True),
                given={
                    "decisions": decisions,
                    "forms": forms,
                    "answers": answers,
                    "failing": failing,
                    "events": events,
                    "unanswered": unanswered,
                },
            )

        return self._desk.read(read)

    # -- rules of publishing

    def rules(self) -> Reply[PublishingRules]:
        """What the organisation wants of those who publish."""

        def read() -> PublishingRules:
            shelf = Catalog(self._permitted(*_READERS, GOVERN, what="look at bodies"))
            found = shelf.ask(lambda each: each.rule(shelf.tenant))
            if found is None:
                return PublishingRules()
            return PublishingRules(two_person=found.two_person, set_by=found.set_by, set_at=found.set_at)

        return self._desk.read(read)

    def govern(self, *, two_person: bool) -> Reply[PublishingRules]:
        """Say whether nobody may publish what they drafted. It takes the capability `bodies:govern`, and every change is kept."""

        def write() -> PublishingRules:
            desk = self._permitted(GOVERN, what="change the rules of publishing")
            rule = PublishingRule(
                tenant=desk.tenant,
                two_person=checked_flag(two_person, "`two_person`"),
                set_by=desk.request.actor.id,
                set_at=desk.service.shared.clock.now(),
            )
            known = desk.service.survey(lambda parts: parts.blueprints().rule(desk.tenant))
            if known is not None and known.two_person == rule.two_person:
                desk.operate(lambda _: None)  # Who changes nothing must be allowed to, all the same.
                return PublishingRules(two_person=known.two_person, set_by=known.set_by, set_at=known.set_at)
            before = {"two_person": False if known is None else known.two_person}
            change = desk.changed("body", "*", "govern", before=before, after={"two_person": rule.two_person})
            desk.record(change, lambda parts: parts.blueprints().set_rule(rule))
            return PublishingRules(two_person=rule.two_person, set_by=rule.set_by, set_at=rule.set_at)

        return self._desk.act(write)

    # -- how

    def _found(self, type_: object, version: int) -> tuple[Catalog, StoredBlueprint]:
        shelf = Catalog(self._permitted(*_READERS, what="look at bodies"))
        return shelf, shelf.body_row(checked_key(type_, "type"), checked_version(version))

    def _versions(self, type_: str, *, status: str = "") -> builtins.list[BodyVersion]:
        shelf = Catalog(self._permitted(*_READERS, what="look at bodies"))
        rows = [each for each in shelf.bodies(type_) if each.status != "draft" and status in {"", each.status}]
        return [shelf.version_of(each, with_body=False) for each in rows]

    def _permitted(self, *capabilities: str, what: str) -> CallContext:
        desk = self._desk.looked_up()
        permit(desk.request.actor, what, *capabilities)
        if len(capabilities) > 1:  # To look at them is for several.
            return desk
        check_unbound(desk, "bodies")
        return desk.needing(*capabilities)


def _begun(desk: CallContext, written: WrittenBody, comment: str) -> BodyDraft:
    shelf, type_ = Catalog(desk), written.body.base.entity_type
    shelf.newest_contract(type_)  # There must be one, whatever else is wrong.
    row = Publisher(desk, desk.tenant).begin(written, replaces=shelf.in_force(type_), comment=comment)
    return _drafted(shelf, row, written)


def _drafted(shelf: Catalog, row: StoredBlueprint, written: WrittenBody) -> BodyDraft:
    """A draft with everything that is wrong with it."""
    if not written.source:
        return body_draft(row, written.body, shelf.check(written.body))
    return body_draft(row, None, shelf.check(written.body, written.source), source=written.source)


def _open(row: StoredBlueprint) -> StoredBlueprint:
    """A draft that was not published yet."""
    if row.status != "draft":
        raise draft_changed(row)
    return row


def _params(given: object) -> dict[str, str | int]:
    if given is None:
        return {}
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return cast("dict[str, str | int]", dict(given))
    raise PayloadError(f"the parameters of a template are given by name, not as {given!r:.200}")

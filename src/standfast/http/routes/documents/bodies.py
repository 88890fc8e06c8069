"""Routes of bodies: the steps that an organisation puts into the slots of its documents, from the draft to the active version."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from standfast.errors import RejectedError
from standfast.features.documents.compiler.workflow_diff import Difference
from standfast.features.documents.publishing.views import (
    BodyCheck,
    BodyDraft,
    BodyTemplate,
    BodyVersion,
    PublishingRules,
)
from standfast.features.documents.scenarios.scenarios import ScenarioResult
from standfast.features.simulation import DryRun
from standfast.http.requests.etags import changed, tag_of
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    Reasoned,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
)
from standfast.http.routes.workflows.assumptions import Supposed
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing

Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Version = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
TEXTS = ("application/yaml", "text/yaml")
"""How contracts and bodies are written, if not as JSON."""


class Instantiate(RequestModel, frozen=True, kw_only=True):
    """The parameters of a template."""

    params: dict[str, str | int] = msgspec.field(default_factory=dict)
    type: str = ""
    """Another type with the same slots; that of the template if this is empty."""
    comment: str = ""


class PublishDraft(RequestModel, frozen=True, kw_only=True):
    """The options of publishing a draft."""

    revision: Version | None = None
    """The revision that the caller has reviewed; to be given where the organisation wants two people."""
    replaces: Number | None = None
    """The version that is in force as the caller knows it; the one that was when the draft was begun if this is left out."""
    comment: str = ""


class BodyRollbackRequest(RequestModel, frozen=True, kw_only=True):
    """A version that is to be in force again."""

    version: Version
    comment: str = ""


class Recompile(RequestModel, frozen=True, kw_only=True):
    """Which bodies to compile again."""

    type: str = ""
    """All types if it is empty."""
    dry_run: bool = False
    """Only report what would be done."""


class DryRunBody(Supposed, frozen=True, kw_only=True):
    """A document that is tried out."""

    data: dict[str, object] | None = None
    document: str = ""
    """The id of an existing document, whose content is used."""
    draft: str = ""
    """The draft to use; the active body if empty."""


class Govern(RequestModel, frozen=True, kw_only=True):
    """The organisation's rules for publishing."""

    two_person: bool


class CommentQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The comment of a change."""

    comment: str = ""


class DraftQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of drafts."""

    type: str = ""


class NumberQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version is meant."""

    version: Number = 0
    """The one in force, or the newest, if it is 0."""


class BodyDiffQuery(NumberQuery, frozen=True, kw_only=True):
    """Which versions are compared."""

    against: Version | None = None
    """The bare envelope if it is left out."""


class DraftDiffQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version to compare a draft with."""

    against: Version | None = None
    """The bare envelope if it is left out."""


class Scenarios(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a body's scenarios."""

    results: list[ScenarioResult]


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """An exported file."""

    format: Literal["yaml"]
    source: str


class Recompiled(msgspec.Struct, frozen=True, kw_only=True):
    """The bodies that were compiled again, or would be."""

    bodies: list[BodyVersion]


# -- templates and drafts


async def list_templates(call: RouteCall[Paged, None]) -> Listing[BodyTemplate]:
    """List the templates of the package, with their parameters."""
    return cursors.sliced(await call.calls.bodies.templates(), call.query.cursor, call.page(call.query.limit))


async def instantiate_template(call: RouteCall[NoQuery, Instantiate]) -> RouteResponse:
    """Begin a draft from a template, for the newest envelope of its type, or of another type with the same slots."""
    asked = call.body
    found = await call.calls.bodies.instantiate(
        call.path["template"], asked.params, type=asked.type, comment=asked.comment
    )
    return _begun(found)


async def check_body(call: RouteCall[NoQuery, object]) -> BodyCheck:
    """Validate a body and run its scenarios; nothing is stored."""
    return await call.calls.bodies.check(call.raw)


async def list_drafts(call: RouteCall[DraftQuery, None]) -> Listing[BodyDraft]:
    """List the open drafts, of one type or of all, oldest first."""
    found = await call.calls.bodies.drafts(call.query.type)
    return cursors.named(found, call.query.cursor, call.page(call.query.limit), lambda each: [each.id])


async def begin_draft(call: RouteCall[CommentQuery, object]) -> RouteResponse:
    """Create a draft from YAML or JSON. It is stored even with errors, which the response lists."""
    return _begun(await call.calls.bodies.save(call.raw, comment=call.query.comment))


async def get_draft(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Get a draft, with its errors."""
    return _shown(await call.calls.bodies.draft(call.path["draft"]))


async def save_draft(call: RouteCall[CommentQuery, object]) -> RouteResponse:
    """Save the next revision of a draft; `If-Match` makes sure of the revision that was seen."""
    try:
        found = await call.calls.bodies.save(
            call.raw, draft=call.path["draft"], revision=call.expected_version, comment=call.query.comment
        )
    except RejectedError as error:
        raise changed(call, error) from None
    return _shown(found)


async def discard_draft(call: RouteCall[NoQuery, None]) -> None:
    """Discard a draft."""
    await call.calls.bodies.discard(call.path["draft"])


async def publish_draft(call: RouteCall[NoQuery, PublishDraft]) -> BodyVersion:
    """Publish a draft: it is compiled, its scenarios are played, and from then on new documents go through it."""
    asked = call.body
    return await call.calls.bodies.publish(
        call.path["draft"], revision=asked.revision, replaces=asked.replaces, comment=asked.comment
    )


async def diff_draft(call: RouteCall[DraftDiffQuery, None]) -> Difference:
    """Compare a draft by slot with the bare envelope, or with a published version."""
    draft = await call.calls.bodies.draft(call.path["draft"])
    return await call.calls.bodies.diff(draft.type, against=call.query.against, draft=draft.id)


async def export_draft(call: RouteCall[NoQuery, None]) -> Exported:
    """A draft as YAML with its hash, to be reviewed and kept in git."""
    return Exported(format="yaml", source=await call.calls.bodies.export(draft=call.path["draft"]))


async def play_draft(call: RouteCall[NoQuery, None]) -> Scenarios:
    """Play the scenarios of a draft; nothing is written."""
    return Scenarios(results=await call.calls.bodies.scenarios(draft=call.path["draft"]))


# -- the active body


async def list_bodies(call: RouteCall[Paged, None]) -> Listing[BodyVersion]:
    """List the bodies in force, by type."""
    found = await call.calls.bodies.list()
    return cursors.named(found, call.query.cursor, call.page(call.query.limit), lambda each: [each.type])


async def get_body(call: RouteCall[NumberQuery, None]) -> BodyVersion:
    """Get a version of a body; the active one by default."""
    return await call.calls.bodies.get(call.path["type"], call.query.version)


async def list_body_versions(call: RouteCall[Paged, None]) -> Listing[BodyVersion]:
    """List all versions of a type's body, oldest first."""
    found = await call.calls.bodies.versions(call.path["type"])
    return cursors.sliced(found, call.query.cursor, call.page(call.query.limit))


async def diff_body(call: RouteCall[BodyDiffQuery, None]) -> Difference:
    """Compare a version by slot with the bare envelope, or with another version."""
    asked = call.query
    return await call.calls.bodies.diff(call.path["type"], asked.version, against=asked.against)


async def export_body(call: RouteCall[NumberQuery, None]) -> Exported:
    """A version of a body as YAML with its hash, to be kept in git; a draft is begun with it."""
    return Exported(format="yaml", source=await call.calls.bodies.export(call.path["type"], call.query.version))


async def play_body(call: RouteCall[NumberQuery, None]) -> Scenarios:
    """Play the scenarios of a version; nothing is written."""
    return Scenarios(results=await call.calls.bodies.scenarios(call.path["type"], call.query.version))


async def dry_run_body(call: RouteCall[NoQuery, DryRunBody]) -> DryRun:
    """Simulate a document's path through the active body or a draft; nothing is stored."""
    asked = call.body
    return await call.calls.bodies.dry_run(
        call.path["type"],
        asked.data,
        document=asked.document,
        draft=asked.draft,
        **asked.told(),
    )


async def rebase_body(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Create a draft of the active body for the newest envelope; the response lists the conflicts."""
    return _begun(await call.calls.bodies.rebase(call.path["type"]))


async def roll_back_body(call: RouteCall[NoQuery, BodyRollbackRequest]) -> BodyVersion:
    """Publish an older version again, as a new one."""
    asked = call.body
    return await call.calls.bodies.rollback(call.path["type"], asked.version, comment=asked.comment)


async def archive_body(call: RouteCall[NoQuery, Reasoned]) -> BodyVersion:
    """Archive the active body. No document can start until another body is published."""
    return await call.calls.bodies.archive(call.path["type"], call.body.reason)


async def recompile_bodies(call: RouteCall[NoQuery, Recompile]) -> Recompiled:
    """Recompile bodies of another compiler version, or report which would be."""
    return Recompiled(bodies=await call.calls.bodies.recompile(call.body.type, dry_run=call.body.dry_run))


async def get_publishing_rules(call: RouteCall[NoQuery, None]) -> PublishingRules:
    """Get the organisation's rules for publishing."""
    return await call.calls.bodies.rules()


async def put_publishing_rules(call: RouteCall[NoQuery, Govern]) -> PublishingRules:
    """Set whether authors may publish their own drafts; every change is recorded."""
    return await call.calls.bodies.govern(two_person=call.body.two_person)


def _shown(found: BodyDraft) -> RouteResponse:
    return RouteResponse(value=found, headers={"etag": tag_of(found, found.revision)})


def _begun(found: BodyDraft) -> RouteResponse:
    place = f"/api/v1/body-drafts/{found.id}"
    return RouteResponse(value=found, status=201, headers={"etag": tag_of(found, found.revision), "location": place})


_READ = Subject("bodies", "/api/v1", "bodies:read", "own")
_DESIGN = Subject("bodies", "/api/v1", "bodies:design", "tenant")
_PUBLISH = Subject("bodies", "/api/v1", "bodies:publish", "tenant")
_BODY = {
    "base": {"entity_type": "invoice", "envelope_version": 1},
    "name": "One manager",
    "slots": {
        "slot:submitted_to_approved": {
            "nodes": [{"id": "manager", "type": "approval", "approvers": [{"role": "manager"}]}]
        }
    },
}
_DRAFT, _TYPE = "/body-drafts/{draft}", "/bodies/{type}"

ROUTES: tuple[Route, ...] = (
    _READ.get("/body-templates", list_templates, query=Paged, answer=Listing[BodyTemplate]),
    _DESIGN.post(
        "/body-templates/{template}/instantiate",
        instantiate_template,
        body=Instantiate,
        answer=BodyDraft,
        status=201,
        example={"comment": "as the others have it"},
    ),
    _READ.post("/body-checks", check_body, is_look=True, body=object, texts=TEXTS, answer=BodyCheck, example=_BODY),
    _READ.get("/body-drafts", list_drafts, query=DraftQuery, answer=Listing[BodyDraft]),
    _DESIGN.post(
        "/body-drafts",
        begin_draft,
        query=CommentQuery,
        body=object,
        texts=TEXTS,
        answer=BodyDraft,
        status=201,
        example=_BODY,
    ),
    _READ.get(_DRAFT, get_draft, answer=BodyDraft, also=(304,)),
    _DESIGN.put(
        _DRAFT,
        save_draft,
        query=CommentQuery,
        body=object,
        texts=TEXTS,
        answer=BodyDraft,
        takes_condition=True,
        example=_BODY,
    ),
    _DESIGN.delete(_DRAFT, discard_draft),
    _PUBLISH.post(
        f"{_DRAFT}/publish",
        publish_draft,
        body=PublishDraft,
        answer=BodyVersion,
        example={"revision": 1, "comment": "as agreed"},
    ),
    _READ.get(f"{_DRAFT}/diff", diff_draft, query=DraftDiffQuery, answer=Difference),
    _READ.get(f"{_DRAFT}/export", export_draft, answer=Exported),
    _READ.get(f"{_DRAFT}/scenarios", play_draft, answer=Scenarios),
    _READ.get("/bodies", list_bodies, query=Paged, answer=Listing[BodyVersion]),
    _READ.get(_TYPE, get_body, query=NumberQuery, answer=BodyVersion),
    _READ.get(f"{_TYPE}/versions", list_body_versions, query=Paged, answer=Listing[BodyVersion]),
    _READ.get(f"{_TYPE}/diff", diff_body, query=BodyDiffQuery, answer=Difference),
    _READ.get(f"{_TYPE}/export", export_body, query=NumberQuery, answer=Exported),
    _READ.get(f"{_TYPE}/scenarios", play_body, query=NumberQuery, answer=Scenarios),
    _READ.post(
        f"{_TYPE}/dry-run",
        dry_run_body,
        is_look=True,
        body=DryRunBody,
        answer=DryRun,
        example={"data": {"number": "R-1", "grand_total": 40000}, "decisions": {"manager": "rejected"}},
    ),
    _DESIGN.post(f"{_TYPE}/rebase", rebase_body, answer=BodyDraft, status=201),
    _PUBLISH.post(
        f"{_TYPE}/rollback", roll_back_body, body=BodyRollbackRequest, answer=BodyVersion, example={"version": 1}
    ),
    _PUBLISH.post(
        f"{_TYPE}/archive", archive_body, body=Reasoned, answer=BodyVersion, example={"reason": "not used any more"}
    ),
    _PUBLISH.post("/body-compilations", recompile_bodies, body=Recompile, answer=Recompiled, example={"dry_run": True}),
    _READ.get("/publishing-rules", get_publishing_rules, answer=PublishingRules),
    _DESIGN.put(
        "/publishing-rules",
        put_publishing_rules,
        permission="bodies:govern",
        body=Govern,
        answer=PublishingRules,
        example={"two_person": False},
    ),
)

"""Versions of documents as pages: what an approver is shown, and nothing that is not for their eyes."""

from __future__ import annotations

import json
from urllib.parse import unquote, urlsplit

import pytest

from app.documents.acting import BOB, EVE, FINANCE, GIVEN, asking, opened
from app.documents.orders import GIVEN as ORDER
from app.documents.orders import SELLER, body, register
from app.documents.test_outward import ALLOWED, SLOT
from people.test_webhook import Receiver, receiver
from standfast import Actor, ForbiddenError, NotFoundError, PayloadError
from standfast.graph.document_spec import DocumentField
from standfast.graph.field_visibility import MASKED
from standfast.machine.documents.visibility import printed
from support.engines import Place

__all__ = ["receiver"]


@pytest.mark.row("EH-17")
def test_a_version_is_a_page_to_read(place: Place) -> None:
    """It tells version, status and hash, and what came after; what is sensitive or for others' eyes is masked, and no text becomes markup."""
    engine = opened(place)
    mine = asking(engine, BOB).documents
    name, bad = 'I"<1>&', "<script>alert('x')</script>"
    mine.create("invoice", {**GIVEN, "note": bad}, id=name)
    mine.mutate("invoice", name, {"total": 700})
    old, new = mine.page("invoice", name, 1), mine.page("invoice", name)
    kept = mine.version("invoice", name, 1)
    for told in ("version 1", "draft", kept.data_hash, "by bob", "<td>500</td>", "<td>version 2, draft</td>"):
        assert told in old
    assert ("<td>700</td>" in new, "version 2" in new, "<td>500</td>" in new) == (True, True, False)
    assert "<td>&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;</td>" in new
    assert "invoice I&quot;&lt;1&gt;&amp;, version 1" in old
    for page in (old, new, asking(engine, FINANCE).documents.page("invoice", name)):
        assert ("DE1" in page, "<script" in page, f"<td>{MASKED}</td>" in page) == (False, False, True)
    with pytest.raises(ForbiddenError):
        asking(engine, EVE).documents.page("invoice", name)
    with pytest.raises(NotFoundError):
        asking(engine, BOB, tenant="other").documents.page("invoice", name)
    with pytest.raises(NotFoundError):
        mine.page("invoice", name, 9)
    for wrong in ("1", 0, 2**70, True):
        with pytest.raises(PayloadError):
            mine.page("invoice", name, wrong)  # type: ignore[arg-type]


@pytest.mark.row("EH-17")
def test_values_are_masked_however_deep_they_lie() -> None:
    """In objects and in the entries of lists, by the field that declares them; what no field declares is shown."""
    secret = DocumentField(type="string", sensitive=True)
    inner = DocumentField(
        type="object", fields={"iban": secret, "own": DocumentField(type="string", visible_to=("boss",))}
    )
    fields = {"bank": inner, "rows": DocumentField(type="list", items=inner)}
    told = {"iban": "DE1", "own": "x", "more": 1}
    data = {"bank": told, "rows": [told, None], "free": {"iban": "y"}}
    hidden = {"iban": MASKED, "own": MASKED, "more": 1}
    assert printed(fields, data, BOB) == {"bank": hidden, "rows": [hidden, None], "free": {"iban": "y"}}
    boss = Actor(id="mia", roles=frozenset({"boss"}))
    assert printed(fields, data, boss)["bank"] == {**hidden, "own": "x"}


@pytest.mark.row("EH-17")
def test_a_link_to_the_page_goes_with_a_request(place: Place, receiver: Receiver) -> None:
    """A payload names the version that it is about; whoever follows the link sees that one, whatever became of the document."""
    engine = place.engine(ALLOWED)
    link = "'https://standfast.example/api/v1/documents/sales_order/{entity.id}/versions/{entity.version}/page'"
    node = f'{{id: tell, type: webhook_out, url: "{receiver.url}", payload: {{link: "{link}"}}}}'
    register(engine, "sales_order", body(SLOT, node))
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", ORDER, id="O-1")
    mine.mutate("sales_order", "O-1", {"quantity": 3})
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()
    (request,) = receiver.requests
    path = urlsplit(json.loads(request.body)["link"]).path
    kind, name, _, version, _ = (unquote(each) for each in path.removeprefix("/api/v1/documents/").split("/"))
    assert (kind, name, version) == ("sales_order", "O-1", "2")
    assert "<td>3</td>" in mine.page(kind, name, int(version))

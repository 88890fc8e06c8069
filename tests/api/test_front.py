"""What is at `/`: a page for people, a problem for programs, and nothing for strangers."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from api import tokens
from api.world import GENEROUS, World, problem
from standfast.http import LoginProvider
from standfast.http.landing_page import wants_page

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def hrefs(page: httpx.Response) -> list[str]:
    """Where its links lead."""
    return re.findall(r'href="([^"]*)"', page.text)


def test_people_are_told_where_they_are(world: World) -> None:
    """A browser is shown a page with a version, whether it is ready and where to look; it loads nothing, runs nothing, and tells nothing of the data."""
    nobody = world.bearer()
    page = nobody.get("/", headers=BROWSER)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert {"Version", "Ready", "API", "Authentication", "Command line"} <= set(re.findall("<dt>(.*?)</dt>", page.text))
    assert "<dd>yes" in page.text
    for each in hrefs(page):
        assert "//" not in each
        assert nobody.get(f"/{each}").status_code == 200
    assert "metrics" not in page.text
    style = re.findall("<style>(.*?)</style>", page.text)[0]
    mark = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{mark}'; " in policy
    assert not re.search(r"<script|<link|<img|<form|src=|@import|url\(|\son\w+=", page.text)
    assert (page.headers["x-frame-options"], page.headers["vary"], page.headers["cache-control"]) == (
        "DENY",
        "accept",
        "no-store",
    )
    world.engine.start("order")
    assert nobody.get("/", headers=BROWSER).text == page.text
    assert nobody.ask("HEAD", "/", headers=BROWSER).text == ""


def test_programs_are_told_that_there_is_nothing(world: World) -> None:
    """Whoever does not ask for a page, or wants to change something, gets the problem of every address that there is not."""
    nobody = world.bearer()
    for accept in ("*/*", "application/json", "", "text/html;q=0.1, application/json"):
        assert problem(nobody.get("/", headers={"accept": accept}))["code"] == "no_route"
    assert nobody.ask("POST", "/", headers=BROWSER, json={}).status_code == 404
    assert nobody.get("/nothing", headers=BROWSER).status_code == 404


WANTED = {"text/html": True, "text/html;q=0": False, "text/html;q=x": False, "text/*": False, "application/json, text/html": True,
          "application/json;q=0.9,text/html;q=0.8": False, ",;,": False, "text/html;q=٣": False}  # fmt: skip


@pytest.mark.parametrize("accept", WANTED)
def test_who_wants_a_page_says_so(accept: str) -> None:
    """Pages are for those who name them, and do not want data more."""
    assert wants_page(accept) == WANTED[accept]


def test_the_page_says_what_a_server_has_and_nobody_writes_into_it(world: World, tmp_path: Path) -> None:
    """Providers, metrics and a server that is not ready are on it; what a request or the options say is shown as text, and leads nowhere else."""
    way = LoginProvider(name="company", label="<b>Company</b>", issuer=tokens.issuer(tmp_path))
    other = World(world.engine, replace(GENEROUS, logins=(way,), open_metrics=True))
    page = other.bearer().get("/", headers={**BROWSER, "host": 'x"><script>alert(1)</script>'})
    assert "metrics" in hrefs(page)
    assert "api/v1/session/login/company" in hrefs(page)
    assert "with &lt;b&gt;Company&lt;/b&gt;" in page.text
    assert "<script" not in page.text
    world.engine.admin.refuse_commands()
    try:
        assert "<dd>no: send requests to another server" in other.bearer().get("/", headers=BROWSER).text
    finally:
        world.engine.admin.resume_processing()
    other.close()

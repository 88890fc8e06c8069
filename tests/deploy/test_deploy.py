"""The files under deploy/ say what the program understands: their command lines, variables, ports and paths are those of the code."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

import click
import pytest
import yaml

from standfast.app.configuration import Configuration, Serving, configured
from standfast.cli import main
from standfast.cli.applications import found_in
from standfast.engine.common.environment import fields_of, read_variables
from standfast.engine.common.settings import Settings
from standfast.http.routes import ROUTES
from standfast.http.serving import _LEAVE_SECONDS
from support.repository import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS: list[dict[str, Any]] = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
DOCKERFILE = [
    line.split(maxsplit=1)
    for line in (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    if line and not line.startswith("#")
]
PUBLIC = {each.path for each in ROUTES if each.is_public}
DRAINED = _LEAVE_SECONDS + Settings().shutdown_timeout.total_seconds()
"""How long a server with a worker may take to end."""


class Line(NamedTuple):
    """A command line, and where it stands."""

    place: str
    words: list[str]


def unit(path: Any) -> configparser.ConfigParser:
    """A unit of systemd."""
    found = configparser.ConfigParser(strict=True, interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]  # Its names have capitals.
    found.read(path, encoding="utf-8")
    return found


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The pods and containers of the manifests."""
    for each in MANIFESTS:
        if "template" in each["spec"]:
            pod = each["spec"]["template"]["spec"]
            yield from ((pod, container) for container in pod["containers"])


def instructions(name: str) -> list[str]:
    """What the Dockerfile says by an instruction."""
    return [rest for word, rest in DOCKERFILE if word == name]


def lines() -> Iterator[Line]:
    """Every call of `standfast` in the files, those in their comments included."""
    [entry], [command] = instructions("ENTRYPOINT"), instructions("CMD")
    assert json.loads(entry) == ["standfast"]
    yield Line("Dockerfile", json.loads(command))
    for name, service in COMPOSE["services"].items():
        if service.get("image") == "standfast":
            yield Line(f"compose.yaml: {name}", service["command"])
    for _, container in containers():
        yield Line(f"kubernetes.yaml: {container['name']}", container["args"])
    for path in UNITS:
        for key, value in unit(path)["Service"].items():
            if key.startswith("Exec"):
                program, *words = shlex.split(value)
                assert program.endswith("/standfast")
                yield Line(f"{path.name}: {key}", words)
    for name in ("compose.yaml", "kubernetes.yaml", "systemd/standfast-server.service"):
        text = (DEPLOY / name).read_text(encoding="utf-8")
        for words in re.findall(r"^#.*? (keys create .*)$", text, re.MULTILINE):
            yield Line(f"{name}: comment", shlex.split(words))


LINES = list(lines())


def parsed(words: list[str]) -> click.Context:
    """A command line, as the command line understands it; click's own error if it does not."""
    command: click.Command = main
    context = main.make_context("standfast", list(words))
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        command, context = found, found.make_context(name, list(rest), parent=context)
    return context


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.place)
def test_every_command_line_is_understood(line: Line) -> None:
    """By the parser of the program itself; nothing in them serves without security."""
    context = parsed(line.words)
    assert not context.params.get("insecure_dev")
    assert context.params.get("serve_port") in {None, Serving().port}


def test_all_of_it_is_there() -> None:
    """Each way to deploy runs the migrations, a server and workers."""
    for place in ("compose", "kubernetes", "standfast-"):
        words = {line.words[0] for line in LINES if line.place.startswith(place)}
        assert {"migrate", "server", "worker"} <= words


def test_health_is_asked_where_it_is_told() -> None:
    """Probes name paths of the route table that need no credential, on the port that is served."""
    probes = [
        (container[kind]["httpGet"], container["ports"])
        for _, container in containers()
        for kind in ("startupProbe", "livenessProbe", "readinessProbe")
        if kind in container
    ]
    assert len(probes) == 3
    for probe, ports in probes:
        assert probe["path"] in PUBLIC
        assert [each["containerPort"] for each in ports if each["name"] == probe["port"]] == [Serving().port]
    asked = " ".join(COMPOSE["services"]["server"]["healthcheck"]["test"])
    [(port, path)] = re.findall(r"http://127\.0\.0\.1:(\d+)(/\w+)", asked)
    assert (int(port), path in PUBLIC) == (Serving().port, True)
    assert COMPOSE["services"]["server"]["ports"] == [f"127.0.0.1:{Serving().port}:{Serving().port}"]
    assert instructions("EXPOSE") == [str(Serving().port)]
    assert {each["spec"]["ports"][0]["targetPort"] for each in MANIFESTS if each["kind"] == "Service"} == {"http"}


def variables() -> Iterator[tuple[str, str]]:
    """Every variable of Standfast that the files set."""
    for service in COMPOSE["services"].values():
        yield from service.get("environment", {}).items()
    for _, container in containers():
        yield from ((each["name"], each.get("value", "")) for each in container["env"])


def test_every_variable_is_one_of_the_program() -> None:
    """Those that are misspelt would be refused when it starts; the application that they name is there."""
    fields = fields_of(Configuration)
    ours = [(name, value) for name, value in variables() if name.startswith("STANDFAST_")]
    assert ours
    for name, value in ours:
        read_variables(fields, {name: value})
        if name == "STANDFAST_APP":
            assert callable(found_in(re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", value), ""))


def test_the_configuration_file_is_understood() -> None:
    """By the reader of the program itself; it has no password."""
    told = configured({}, {}, file=str(DEPLOY / "systemd" / "standfast.toml")).configuration
    assert (told.serve.port, told.serve.host) == (Serving().port, "127.0.0.1")
    assert ":" not in told.database.partition("//")[2].partition("@")[0]
    for path in UNITS:
        assert unit(path)["Service"]["Environment"] == "STANDFAST_CONFIG=/etc/standfast/standfast.toml"


def test_there_is_time_to_drain() -> None:
    """Whoever asks it to end waits longer than requests and handlers may take before it kills."""
    for path in UNITS:
        assert int(unit(path)["Service"]["TimeoutStopSec"]) > DRAINED
    for pod, container in containers():
        if container["name"] != "migrate":
            waits = int(container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["", "0"])[1])
            assert pod["terminationGracePeriodSeconds"] > DRAINED + waits
    for name in ("server", "worker"):
        assert int(COMPOSE["services"][name]["stop_grace_period"].removesuffix("s")) > DRAINED
    assert instructions("STOPSIGNAL") == ["SIGTERM"]


def test_nothing_runs_as_root_or_has_a_secret_written_down() -> None:
    """The image has a user of its own, which the manifests insist on; passwords come from outside."""
    assert instructions("USER") == ["10001"]
    for pod, container in containers():
        assert pod["securityContext"] == {"runAsNonRoot": True, "runAsUser": 10001}
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert not container["image"].endswith(":latest")
        assert ":" in container["image"]
    for path in UNITS:
        assert unit(path)["Service"]["User"] == "standfast"
    for name, value in variables():
        if name in {"POSTGRES_PASSWORD", "PGPASSWORD"}:
            assert value.startswith("${POSTGRES_PASSWORD:?")
        if name == "STANDFAST_DATABASE":  # An address with somebody's password in it holds only for some letters.
            assert value in {"", "postgresql://standfast@database/standfast"}


def test_what_a_cluster_tells_its_containers_stops_nothing() -> None:
    """Of a service it makes variables that begin with its name, for every container: none of ours, and none that is misspelt."""
    [service] = [each["metadata"]["name"] for each in MANIFESTS if each["kind"] == "Service"]
    name = service.upper().replace("-", "_")
    told = {
        f"{name}_SERVICE_HOST": "10.96.0.7",
        f"{name}_SERVICE_PORT": "80",
        f"{name}_SERVICE_PORT_HTTP": "80",
        f"{name}_PORT": "tcp://10.96.0.7:80",
        f"{name}_PORT_80_TCP": "tcp://10.96.0.7:80",
        f"{name}_PORT_80_TCP_PROTO": "tcp",
        f"{name}_PORT_80_TCP_PORT": "80",
        f"{name}_PORT_80_TCP_ADDR": "10.96.0.7",
        f"{name}_SERVE_PORT": "tcp://10.96.0.8:80",
    }
    assert configured({}, told).configuration == Configuration()
    for pod, _ in containers():
        assert pod["enableServiceLinks"] is False


def test_a_job_makes_room_for_that_of_the_next_version() -> None:
    """What a job does cannot be changed, so that the same name can be applied again only once it is gone."""
    [job] = [each for each in MANIFESTS if each["kind"] == "Job"]
    assert job["spec"]["ttlSecondsAfterFinished"] > 0


def test_the_image_installs_what_there_is() -> None:
    """The extras that it asks for, the folders that it copies and the version in the manifests are those of the project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [extras] = re.findall(r"\.\[([\w,]+)\]", " ".join(instructions("RUN")))
    assert {"server", "postgres"} <= set(extras.split(",")) <= set(project["optional-dependencies"])
    for each in instructions("COPY"):
        if not each.startswith("--from"):
            assert all((ROOT / name).exists() for name in each.split()[:-1])
    assert {container["image"] for _, container in containers()} == {f"standfast:{project['version']}"}

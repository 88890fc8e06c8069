"""Standfast in an application of Flask: with a factory, on a real server, with the command line of Flask in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
import sqlalchemy
from flask import Flask, Response, current_app, jsonify
from sqlalchemy.orm import Session
from werkzeug.serving import make_server

from standfast import ConfigurationError, Engine, Saga, StandfastError
from standfast.contrib.embedded_cli import configuration_of
from standfast.contrib.flask import Standfast, answer_error, told
from standfast.contrib.flask import register as register_of_worker
from standfast.testing import ManualEngine
from support.engines import Live
from support.repository import ROOT

FACTORY = """
    import os

    from flask import Flask, current_app

    from standfast import Saga
    from standfast.contrib.flask import Standfast


    def ship(sku):
        return {"parcel": f"a box with {sku}", "by": current_app.name}


    standfast = Standfast(lambda engine: engine.register(Saga("order").step("ship", ship).build()))


    def create_app():
        app = Flask(__name__)
        app.config.update(STANDFAST_DATABASE=os.environ["SHOP"], STANDFAST_TENANT="acme", STANDFAST_SETTINGS={"poll_interval": "0.1s"})
        standfast.init_app(app)
        return app
"""
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def ship(sku: str) -> dict[str, object]:
    """The only step."""
    return {"parcel": f"a box with {sku}"}


def register(engine: Engine) -> None:
    """What every engine of the application knows."""
    engine.register(Saga("order").step("ship", ship).build())


@contextmanager
def serving(app: Flask) -> Iterator[httpx.Client]:
    """A client of the application on a real server."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}", timeout=60) as client:
            yield client
    finally:
        server.shutdown()
        thread.join(10)


def test_a_run_begins_with_the_rows_of_a_session_of_sqlalchemy(live: Live) -> None:
    """What a request writes and what it starts are committed together, or neither; each application of a factory has an engine of its own."""
    extension = Standfast(register)
    app = Flask("shop")
    app.config.update(STANDFAST_DATABASE=live.url, STANDFAST_SETTINGS={"poll_interval": "0.1s"})
    extension.init_app(app)
    alchemy = sqlalchemy.create_engine(live.url.replace("postgresql://", "postgresql+psycopg://"))

    @app.post("/order/<sku>")
    def order(sku: str) -> Response:
        with Session(alchemy) as session, session.begin():
            session.execute(sqlalchemy.text("insert into orders values (:sku)"), {"sku": sku})
            with extension.engine.within(session) as unit:
                run = unit.start("order", {"sku": sku})
            if sku == "chair":
                raise ZeroDivisionError
        return jsonify({"run": str(run.id)})

    @app.get("/result/<run>")
    def result(run: str) -> Response:
        return jsonify(extension.engine.run(run).result(timeout=60))

    with alchemy.begin() as connection:
        connection.execute(sqlalchemy.text("create table orders (sku text primary key)"))
    with app.app_context():
        engine = extension.engine.start_worker()
    try:
        with serving(app) as client:
            assert client.post("/order/chair").status_code == 500
            run = client.post("/order/lamp").json()["run"]
            assert client.get(f"/result/{run}").json()["parcel"] == "a box with lamp"
        with alchemy.begin() as connection:
            assert connection.execute(sqlalchemy.text("select sku from orders")).scalars().all() == ["lamp"]
        assert len(engine.instances.list()) == 1
    finally:
        engine.stop()
        alchemy.dispose()


def test_the_command_line_of_flask_has_that_of_standfast(tmp_path: Path) -> None:
    """`flask standfast worker` works for the application that Flask has found, in its context, until it is asked to end."""
    (tmp_path / "shop.py").write_text(textwrap.dedent(FACTORY), encoding="utf-8")
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    engine = Engine(url, tenant="acme")  # It takes commands, and does not work.
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "SHOP": url}
    command = [sys.executable, "-m", "flask", "--app", "shop", "standfast", "worker"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stderr is not None
            assert any("working on" in line for line in worker.stderr)
            assert engine.start("order", {"sku": "lamp"}).result(timeout=60) == {
                "sku": "lamp",
                "parcel": "a box with lamp",
                "by": "shop",
            }
        finally:
            engine.stop()
            worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0


def test_one_of_several_workers_finds_the_application_by_what_flask_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`flask --app shop standfast worker --processes 2` begins processes that have only the variable FLASK_APP."""
    (tmp_path / "shop_of_two.py").write_text(textwrap.dedent(FACTORY), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SHOP", f"sqlite:///{tmp_path / 'shop.db'}")
    monkeypatch.setenv("FLASK_APP", "shop_of_two")
    engine = ManualEngine()
    register_of_worker(engine)
    assert [each.name for each in engine.definitions.list()] == ["order"]
    engine.stop()


def test_what_is_wrong_is_told_by_the_factory() -> None:
    """An unknown setting, a value that cannot be, an application without the extension, and one that has it twice."""
    for key, value, words in [
        ("STANDFAST_SETTINGS", {"concurency": 1}, "no setting 'settings.concurency'; did you mean 'concurrency'"),
        ("STANDFAST_SETTINGS", {"concurrency": "many"}, "the setting 'settings.concurrency' is 'many'"),
    ]:
        app = Flask("shop")
        app.config[key] = value
        with pytest.raises(ConfigurationError, match=words):
            Standfast(register, app)
    with Flask("other").app_context(), pytest.raises(ConfigurationError, match="has no engine"):
        _ = Standfast(register).engine
    app = Flask("shop")
    extension = Standfast(register, app)
    with pytest.raises(ConfigurationError, match="already"):
        extension.init_app(app)


def test_settings_are_values_of_python() -> None:
    """A duration, a list and nothing at all are taken as they are written in Python, not only as texts."""
    app = Flask("shop")
    app.config["STANDFAST_SETTINGS"] = {
        "lease": timedelta(seconds=90),
        "outbound_allow": ["127.0.0.1", "intern.example"],
        "keep_finished": None,
    }
    with app.app_context():
        Standfast(register, app)
        found = configuration_of(told(app)).settings
    assert (found.lease, found.keep_finished) == (timedelta(seconds=90), None)
    assert found.outbound_allow == ("127.0.0.1", "intern.example")


def test_a_test_gives_the_application_an_engine_of_its_own() -> None:
    """With a clock that the test moves; nothing is opened for it."""
    app = Flask("shop")
    extension = Standfast(register, app)
    engine = ManualEngine().register(Saga("order").step("ship", lambda: {"by": current_app.name}).build())
    with app.app_context():
        extension.use(engine)
        run = extension.engine.start("order", {"sku": "lamp"})
    engine.drain()
    assert run.result() == {"sku": "lamp", "by": "shop"}
    engine.stop()


def test_what_the_engine_refuses_is_answered_as_the_http_api_would() -> None:
    """With its status, a stable code and a remedy; what is the application's own fault stays an exception, for Flask to report."""
    app = Flask("shop")
    app.config["STANDFAST_DATABASE"] = "sqlite://"
    extension = Standfast(register, app)
    app.register_error_handler(StandfastError, answer_error)

    @app.get("/runs/<run>")
    def status(run: str) -> Response:
        return jsonify(extension.engine.run(run).describe().status)

    @app.get("/wrong")
    def wrong() -> Response:
        raise ConfigurationError("the application is wrong")

    with serving(app) as client:
        unknown = client.get("/runs/01890000-0000-7000-8000-000000000000", headers={"traceparent": TRACE})
        assert (unknown.status_code, unknown.headers["content-type"]) == (404, "application/problem+json")
        assert (unknown.json()["code"], unknown.json()["trace_id"]) == ("not_found", TRACE.split("-")[1])
        assert client.get("/runs/nonsense").status_code == 422
        failed = client.get("/wrong")
        assert (failed.status_code, "wrong" in failed.text) == (500, False)
    with app.app_context():
        extension.engine.stop()


@pytest.mark.parametrize("name", ["flask", "django.middleware", "prometheus", "logs", "opentelemetry", "sentry"])
def test_nothing_of_the_server_is_needed_where_nothing_is_served(name: str) -> None:
    """Adapters are loaded where neither Starlette nor the driver of Postgres is installed."""
    missing = ["starlette", "uvicorn", "jwt", "anyio", "psycopg", "httpx"]
    program = f"import sys; sys.modules.update(dict.fromkeys({missing!r})); import standfast.contrib.{name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_an_engine_is_opened_behind_a_transaction_that_has_written(tmp_path: Path) -> None:
    """The first request of each new process writes its rows first, and on SQLite has the one writer when it asks for the engine."""
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    with Engine(url) as engine:  # As `flask standfast migrate` and a worker do.
        register(engine)
    database = sqlalchemy.create_engine(url)
    app = Flask("shop")
    app.config["STANDFAST_DATABASE"] = url
    extension = Standfast(register, app)
    with database.begin() as connection:
        connection.execute(sqlalchemy.text("create table orders (sku text)"))
    with app.app_context(), Session(database) as session, session.begin():
        session.execute(sqlalchemy.text("insert into orders values ('lamp')"))
        with extension.engine.within(session) as unit:
            run = unit.start("order", {"sku": "lamp"})
    with app.app_context():
        assert run.describe().status in {"pending", "running"}
        extension.engine.stop()
    database.dispose()

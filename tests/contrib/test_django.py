"""Standfast in a real project of Django, with a real server and `manage.py` in processes of their own."""

from __future__ import annotations

from pathlib import Path

from support.engines import Live
from support.projects import database, run, write

SETTINGS = """
    SECRET_KEY = "x"
    DEBUG = False
    ALLOWED_HOSTS = ["*"]
    INSTALLED_APPS = [
        "django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes", "django.contrib.messages",
        "django.contrib.sessions", "standfast.contrib.django", "shop",
    ]
    DATABASES = {
        "default": DATABASE,
        "memory": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
        "odd": {"ENGINE": "django.db.backends.dummy"},
    }
    USE_TZ = True
    MIDDLEWARE = [
        "django.contrib.sessions.middleware.SessionMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware", "standfast.contrib.django.middleware.AnswerErrors",
    ]
    TEMPLATES = [{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": [
            "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
            "django.contrib.messages.context_processors.messages",
        ]},
    }]
    MIGRATION_MODULES = dict.fromkeys(["admin", "auth", "contenttypes", "sessions"])  # Tables at once, not one change after the other.
    STATIC_URL = "/static/"
    ROOT_URLCONF = "shop.urls"
    DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
    STANDFAST = {"tenant": "acme", "settings": {"poll_interval": "0.1s", "threads": 1}, "run_url": "https://ops.test/runs/{run}"}
"""
MODELS = """
    from django.db import models

    class Order(models.Model):
        sku = models.TextField(unique=True)
        run = models.TextField(default="")
"""
WORKFLOWS = """
    from asgiref.sync import sync_to_async
    from django.db import connection

    from standfast import Saga

    def look():
        from shop.models import Order
        Order.objects.count()
        connection.connection.close()  # As a server does that is restarted: whoever uses the thread next must not suffer from it.

    async def look_from_a_coroutine():
        await sync_to_async(look)()

    def ship(sku):
        look()
        return {"parcel": f"a box with {sku}"}

    def register(engine):
        saga = Saga("order").step("look", look, attempts=1).step("first", look_from_a_coroutine, attempts=1)
        engine.register(saga.step("second", look_from_a_coroutine, attempts=1).step("ship", ship, attempts=1).build())
"""
ADMIN = """
    from django.contrib import admin

    from standfast.contrib.django import RunLinks
    from shop.models import Order

    @admin.register(Order)
    class OrderAdmin(RunLinks, admin.ModelAdmin):
        list_display = ("sku", "standfast_run")
"""
URLS = """
    from django.contrib import admin
    from django.db import transaction
    from django.http import JsonResponse
    from django.urls import path

    from standfast import ConfigurationError
    from standfast.contrib.django import atomic, get_engine, on_commit
    from shop.models import Order

    def order(request, sku):
        with atomic() as unit:
            row = Order.objects.create(sku=sku)
            row.run = str(unit.start("order", {"sku": sku}).id)
            row.save()
            if "fail" in request.GET:
                raise ZeroDivisionError
        return JsonResponse({"run": row.run})

    def later(request, sku):
        with transaction.atomic():
            Order.objects.create(sku=sku)
            on_commit(lambda engine: engine.start("order", {"sku": sku}, idempotency_key=sku))
            if "fail" in request.GET:
                transaction.set_rollback(True)
        return JsonResponse({})

    def result(request, run):
        return JsonResponse(get_engine().run(run).result(timeout=60))

    async def status(request, run):
        return JsonResponse({"status": (await get_engine().aio.run(run).describe()).status})

    def refused(request, sku):
        with atomic() as unit:
            Order.objects.create(sku=sku)
            unit.start("no such workflow", {})

    def wrong(request):
        raise ConfigurationError("the project is wrong")

    urlpatterns = [
        path("order/<sku>", order), path("later/<sku>", later), path("result/<run>", result), path("status/<run>", status), path("refused/<sku>", refused), path("wrong", wrong),
        path("admin/", admin.site.urls),
    ]
"""
MANAGE = """
    import os
    import sys

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project")
    if __name__ == "__main__":
        from django.core.management import execute_from_command_line
        execute_from_command_line(sys.argv)
"""
CASES = [
    (
        {"database": "sqlite:///h.db", "settings": {"concurency": 5}},
        "no setting 'settings.concurency'; did you mean 'concurrency'?",
    ),
    (
        {"database": "sqlite:///h.db", "settings": {"concurrency": "many"}},
        "the setting 'settings.concurrency' is 'many'; give a whole number",
    ),
    ({"database": "sqlite:///h.db", "tenent": "acme"}, "did you mean"),
    ({"database": "sqlite:///h.db", 5: "acme"}, "settings are named by texts"),
    ({"database": "other"}, "DATABASES has no 'other'"),
    ({"database": "odd"}, "takes Postgres or SQLite"),
    ({"database": 5}, "an alias of DATABASES or a URL"),
    ({"database": "memory"}, "is in memory"),
    ([], "settings.STANDFAST is a dict"),
]
STORY = """
    import json
    import subprocess
    import sys
    import threading
    from contextlib import suppress
    from urllib.error import HTTPError
    from urllib.request import urlopen
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    import manage
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application
    from django.test import Client

    from standfast.contrib.django import get_engine
    from standfast.contrib.django.apps import check_settings
    from shop.models import Order

    def standfast(*words):
        try:
            call_command("standfast", *words)
        except SystemExit as ended:
            return ended.code

    class Quiet(WSGIRequestHandler):
        def log_message(self, *arguments):
            pass

    said = settings.STANDFAST
    for wrong, told in CASES:
        settings.STANDFAST = wrong
        found = [each.msg for each in check_settings(None)]
        assert len(found) == 1 and told in found[0], (wrong, found)
    settings.STANDFAST = said
    call_command("check")
    call_command("migrate", run_syncdb=True, verbosity=0)
    assert standfast("migrate") == 0
    server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"

    def ask(path):
        with urlopen(address + path) as answer:
            return json.load(answer)

    def refusal(path):
        try:
            ask(path)
        except HTTPError as error:
            return error.code, json.load(error) if "problem+json" in error.headers["content-type"] else None

    code, told = refusal("/status/01890000-0000-7000-8000-000000000000")
    assert (code, told["code"], told["status"]) == (404, "not_found", 404), (code, told)
    assert refusal("/status/nonsense")[0] == 422
    assert refusal("/refused/stool")[0] == 404
    assert refusal("/wrong") == (500, None), "the project's own faults are Django's to report"
    run = ask("/order/lamp")["run"]
    assert ask(f"/status/{run}")["status"] in {"pending", "running"}
    with suppress(HTTPError):
        ask("/order/chair?fail=1")
    ask("/later/table")
    ask("/later/sofa?fail=1")
    assert sorted(Order.objects.values_list("sku", flat=True)) == ["lamp", "table"]
    assert [each.tenant for each in get_engine().instances.list()] == ["acme", "acme"]
    assert standfast("doctor") == 1, "work waits, and nobody works"
    worker = subprocess.Popen([sys.executable, "manage.py", "standfast", "worker"]) if "process" in sys.argv else None
    if worker is None:
        get_engine().start_worker()
    try:
        assert ask(f"/result/{run}")["parcel"] == "a box with lamp"
    finally:
        if worker is not None:
            worker.terminate()
            assert worker.wait(60) == 0
    assert {each.status for each in get_engine().instances.list()} <= {"completed", "running"}

    Order.objects.create(sku="odd", run="<script>")
    browser = Client()
    browser.force_login(User.objects.create_superuser("ann"))
    page = browser.get("/admin/shop/order/").content.decode()
    assert f'<a href="https://ops.test/runs/{run}">{run}</a>' in page
    assert '<a href="https://ops.test/runs/%3Cscript%3E">&lt;script&gt;</a>' in page
    server.shutdown()
    get_engine().stop()
    print("told to the end")
"""


def test_a_project_starts_runs_with_its_rows_and_a_worker_of_manage_py_does_them(live: Live, tmp_path: Path) -> None:
    """Rows and runs are written together or not at all, `on_commit` waits for the commit, handlers have connections that hold, the admin leads to the run.

    `manage.py check` names what is wrong in the settings, and what the engine refuses is answered as the HTTP API would.
    """
    settings = SETTINGS.replace("DATABASE,", f"{database(live.url)!r},")
    files = {
        "project.py": settings, "manage.py": MANAGE, "story.py": STORY.replace("CASES", repr(CASES)), "shop/__init__.py": "", "shop/models.py": MODELS,
        "shop/workflows.py": WORKFLOWS, "shop/urls.py": URLS, "shop/admin.py": ADMIN,
    }  # fmt: skip
    write(tmp_path, files)
    worker = "process" if live.url.startswith("sqlite") else "thread"  # One way on each store: processes are dear.
    done = run(tmp_path, "story.py", worker)
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["told to the end"]), done.stderr

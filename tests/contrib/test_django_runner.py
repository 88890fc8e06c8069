"""Tests of a project of Django, as its people run them: by `manage.py test`, and by pytest on a database of Django's."""

from __future__ import annotations

from pathlib import Path

import pytest

from standfast import Engine
from support.engines import Live
from support.projects import database, run, write

SETTINGS = """
    SECRET_KEY = "x"
    INSTALLED_APPS = ["standfast.contrib.django", "shop"]
    DATABASES = {"default": DATABASE}
    ROOT_URLCONF = "shop.urls"
    USE_TZ = True
    DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
    STANDFAST = {"tenant": "acme", "settings": {"retry": {"max_attempts": 1}}}
"""
FILES = {
    "manage.py": """
        import os
        import sys

        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project")
        if __name__ == "__main__":
            from django.core.management import execute_from_command_line
            execute_from_command_line(sys.argv)
    """,
    "shop/__init__.py": "",
    "shop/apps.py": """
        from django.apps import AppConfig

        class ShopConfig(AppConfig):
            name = "shop"

            def ready(self):
                from django.conf import settings
                from standfast.contrib.django import get_engine
                if "early" in settings.STANDFAST.get("run_url", ""):
                    get_engine()  # Too early: a test runner has not come yet.
    """,
    "shop/models.py": """
        from django.db import models

        class Order(models.Model):
            sku = models.TextField(unique=True)
    """,
    "shop/workflows.py": """
        from standfast import Saga

        def ship(sku):
            from shop.models import Order
            return {"known": Order.objects.filter(sku=sku).count()}

        def register(engine):
            engine.register(Saga("order").step("ship", ship).build())
    """,
    "shop/urls.py": """
        from django.http import JsonResponse
        from django.urls import path

        from standfast.contrib.django import atomic, get_engine
        from shop.models import Order

        def plain(request, sku):
            Order.objects.create(sku=sku)
            return JsonResponse({"run": str(get_engine().start("order", {"sku": sku}, idempotency_key=sku).id)})

        def order(request, sku):
            with atomic() as unit:
                Order.objects.create(sku=sku)
                return JsonResponse({"run": str(unit.start("order", {"sku": sku}, idempotency_key=sku).id)})

        urlpatterns = [path("plain/<sku>", plain), path("order/<sku>", order)]
    """,
}
ROLLED_BACK = """
    from django.test import TestCase

    from standfast.contrib.django.testing import manual_engine
    from shop.models import Order

    class Tests(TestCase):
        def setUp(self):
            self.engine = self.enterContext(manual_engine())

        def test_a_handler_sees_the_rows_of_the_test(self):
            run = self.client.get("/plain/lamp").json()["run"]
            self.engine.drain()
            self.assertEqual(self.engine.run(run).result()["known"], 1)
            self.assertEqual(Order.objects.count(), 1, "the transaction of the test is as it was")
"""
COMMITTED = """
    from django.test import TransactionTestCase

    from standfast.contrib.django.testing import manual_engine

    class Tests(TransactionTestCase):
        def setUp(self):
            self.engine = self.enterContext(manual_engine())

        def order(self):
            self.assertEqual(self.engine.instances.list(), [], "nothing is left of other tests")
            return self.engine.run(self.client.get("/order/lamp").json()["run"])

        def test_rows_and_runs_are_committed_together(self):
            run = self.order()
            self.engine.drain()
            self.assertEqual(run.result()["known"], 1)
            self.assertEqual(run.describe().tenant, "acme")

        def test_what_is_left_undone_bothers_nobody(self):
            self.order()
"""
WITH_PYTEST = """
    import django
    import pytest
    from django.test import Client
    from django.test.utils import setup_databases, setup_test_environment, teardown_databases

    django.setup()
    from django.db import transaction
    from standfast import ConfigurationError

    @pytest.fixture(scope="module")
    def databases():  # As pytest-django makes them.
        setup_test_environment()
        before = setup_databases(verbosity=0, interactive=False)
        yield
        teardown_databases(before, verbosity=0)

    @pytest.fixture
    def in_transaction(databases):
        with transaction.atomic():
            yield
            transaction.set_rollback(True)

    def test_without_a_database_of_a_runner(request):
        with pytest.raises(ConfigurationError, match="none of a test runner"):
            request.getfixturevalue("standfast_django_engine")

    def test_that_commits(databases, standfast_django_engine):
        run = Client().get("/order/lamp").json()["run"]
        standfast_django_engine.drain()
        assert standfast_django_engine.run(run).result()["known"] == 1

    def test_that_does_not(in_transaction, standfast_django_engine):
        run = Client().get("/plain/chair").json()["run"]
        standfast_django_engine.drain()
        assert standfast_django_engine.run(run).result()["known"] == 1
"""
EARLY = """
    from django.db import connection
    from django.test import TransactionTestCase

    from standfast import ConfigurationError
    from standfast.contrib.django import get_engine, use

    class Tests(TransactionTestCase):
        def test_the_engine_is_that_of_the_test(self):
            self.addCleanup(use, None)
            name = str(connection.settings_dict["NAME"])
            if "memory" in name:
                with self.assertRaisesMessage(ConfigurationError, "is in memory"):
                    get_engine()
            else:
                get_engine().start("order", {"sku": "lamp"})
                self.assertEqual(len(get_engine().instances.list()), 1)
"""


BEHIND = """
    import manage
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import transaction

    from standfast.contrib.django import atomic, get_engine, use
    from shop.models import Order

    call_command("migrate", run_syncdb=True, verbosity=0)
    with atomic() as unit:  # Has the one writer from its beginning, and nothing of the engine is there yet.
        unit.start("order", {"sku": "lamp"})
    use(None)
    with transaction.atomic():  # As ATOMIC_REQUESTS has it.
        Order.objects.create(sku="chair")
        with atomic() as unit:
            unit.start("order", {"sku": "chair"})
    print(len(get_engine().instances.list()), "runs")
    use(None)
"""


def project(folder: Path, told: dict[str, object], tests: str, *, run_url: str = "") -> None:
    """A project with tests."""
    settings = SETTINGS.replace("DATABASE}", f"{told!r}}}").replace(
        '"settings": ', f'"run_url": {run_url!r}, "settings": '
    )
    write(folder, {**FILES, "project.py": settings, "shop/tests.py": tests})


def within_reach(live: Live, folder: Path) -> dict[str, object]:
    """A database whose tests have one that others can reach."""
    told: dict[str, object] = {**database(live.url)}
    return told | {"TEST": {"NAME": str(folder / "tests.db")}} if live.url.startswith("sqlite") else told


def check(folder: Path, *words: str, said: str) -> None:
    """Run a program of the project, which has to go well."""
    done = run(folder, *words)
    assert (done.returncode, said in done.stdout + done.stderr) == (0, True), done.stdout + done.stderr


@pytest.mark.parametrize("tests", [ROLLED_BACK, EARLY], ids=["rolled back", "early"])
def test_a_project_with_django_s_own_defaults_is_tested(tmp_path: Path, tests: str) -> None:
    """Django has SQLite of tests in memory: `manage.py test` goes on, engines are in memory, and handlers leave the test's transaction alone."""
    told: dict[str, object] = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "shop.db")}
    project(tmp_path, told, tests)
    check(tmp_path, "manage.py", "test", "--noinput", said="OK")


def test_tests_that_commit_have_an_engine_on_their_database(live: Live, tmp_path: Path) -> None:
    """Each begins without the runs of the others, and the runner gets rid of its database behind them."""
    project(tmp_path, within_reach(live, tmp_path), COMMITTED + ROLLED_BACK.replace("class Tests", "class Others"))
    check(tmp_path, "manage.py", "test", "--noinput", said="Ran 3 tests")


def test_an_engine_that_was_opened_too_early_is_not_that_of_the_tests(live: Live, tmp_path: Path) -> None:
    """Whoever opens it while the project is loaded, before a runner has made its databases, has no test write into the real one."""
    project(tmp_path, within_reach(live, tmp_path), EARLY, run_url="early")
    check(tmp_path, "manage.py", "test", "--noinput", said="OK")
    with Engine(live.url, tenant="acme", threads=False) as engine:
        assert engine.instances.list() == []


def test_the_plugin_of_pytest_has_an_engine_for_projects(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the database of the test, or in memory where the test never commits; never on one that no runner has made."""
    project(tmp_path, within_reach(live, tmp_path), "")
    write(tmp_path, {"test_shop.py": WITH_PYTEST})
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    words = ["-m", "pytest", "-q", "-p", "pytest_standfast", "-p", "no:cacheprovider", "test_shop.py"]
    check(tmp_path, *words, said="3 passed")


def test_an_engine_is_opened_behind_a_transaction_of_the_project(tmp_path: Path) -> None:
    """By the first request of each process, which may have the one writer of a file of SQLite already."""
    options = {"transaction_mode": "IMMEDIATE", "timeout": 5}
    told: dict[str, object] = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "shop.db")}
    project(tmp_path, told | {"OPTIONS": options}, "")
    write(tmp_path, {"behind.py": BEHIND})
    check(tmp_path, "behind.py", said="2 runs")

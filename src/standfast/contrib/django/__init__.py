"""Standfast in a Django project: `"standfast.contrib.django"` in INSTALLED_APPS.

The engine opens on first use, once per process, on the project's database. Modules `workflows` of the installed apps
define `register(engine)`. `manage.py standfast …` is the command line, worker included.
"""

from standfast.contrib.django.engines import atomic, get_engine, on_commit, register, url_of, use
from standfast.contrib.django.links import RunLinks, run_link

__all__ = ["RunLinks", "atomic", "get_engine", "on_commit", "register", "run_link", "url_of", "use"]

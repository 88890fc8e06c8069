"""Standfast in a Django project: `"standfast.contrib.django"` in INSTALLED_APPS.

The engine is opened by whoever asks for it first, in each process, on the database of the project. Modules `workflows` of the installed apps
say in `register(engine)` what it knows. `manage.py standfast …` is the command line, worker included.
"""

from standfast.contrib.django.engines import atomic, get_engine, on_commit, register, url_of, use
from standfast.contrib.django.links import RunLinks, run_link

__all__ = ["RunLinks", "atomic", "get_engine", "on_commit", "register", "run_link", "url_of", "use"]

"""The HTTP API of an engine, and its security. It needs the extra `holdfast[server]`."""

from holdfast.http.application import create_app
from holdfast.http.ending import end_streams, ending
from holdfast.http.endpoints import answer_error
from holdfast.http.options import HttpOptions, InboundHook, Issuer, LoginProvider
from holdfast.http.serving import serve

__all__ = [
    "HttpOptions",
    "InboundHook",
    "Issuer",
    "LoginProvider",
    "answer_error",
    "create_app",
    "end_streams",
    "ending",
    "serve",
]

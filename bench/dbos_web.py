"""DBOS behind FastAPI, beside `http start`: a workflow of one step is enqueued by POST, and a worker in another process runs it.

    python bench/dbos_web.py serve <url> | work <url>

DBOS is no dependency of Standfast. The row runs this with the Python that STANDFAST_DBOS_PYTHON names, of an environment that has it
(`python -m pip install dbos fastapi uvicorn`). The queue is polled a hundred times a second instead of once, and 64 workflows run at once.
"""

from __future__ import annotations

import importlib
import sys
import threading
import typing
from typing import Any

QUEUE, WORKFLOW = "bench", "one"
POLL_SECONDS = 0.01
AT_ONCE = 64


def serve(url: str) -> None:
    """The server: it enqueues, and works on nothing."""
    fastapi: Any = importlib.import_module("fastapi")
    uvicorn: Any = importlib.import_module("uvicorn")
    client = importlib.import_module("dbos").DBOSClient(system_database_url=url)
    app = fastapi.FastAPI()

    @typing.no_type_check
    @app.post("/start", status_code=201)
    async def start(body: dict[str, object]) -> dict[str, str]:
        handle = await client.enqueue_async({"queue_name": QUEUE, "workflow_name": WORKFLOW}, body["n"])
        return {"id": handle.workflow_id}

    @typing.no_type_check
    @app.get("/left")
    async def left() -> int:
        return len(await client.list_workflows_async(status=["ENQUEUED", "PENDING"], limit=1))

    class Server(uvicorn.Server):  # type: ignore[misc]
        async def startup(self, sockets: object = None) -> None:
            await super().startup(sockets)
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            print(f"serving at http://{host}:{port}", file=sys.stderr, flush=True)

    Server(uvicorn.Config(app, port=0, log_level="error", access_log=False)).run()


def work(url: str) -> None:
    """The worker."""
    dbos: Any = importlib.import_module("dbos")
    dbos.DBOS(
        config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "max_executor_threads": AT_ONCE}
    )

    @typing.no_type_check
    @dbos.DBOS.step()
    def step(number: int) -> dict[str, int]:
        return {"n": number}

    @typing.no_type_check
    @dbos.DBOS.workflow(name=WORKFLOW)
    def one(number: int) -> dict[str, int]:
        return step(number)

    dbos.DBOS.launch()
    dbos.DBOS.register_queue(QUEUE, worker_concurrency=AT_ONCE, polling_interval_sec=POLL_SECONDS)
    print("working on it", file=sys.stderr, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    {"serve": serve, "work": work}[sys.argv[1]](sys.argv[2])

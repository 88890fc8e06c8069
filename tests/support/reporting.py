"""The views for reports: what they tell of processes is what the engine tells of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from standfast import Engine, JsonCodec
from standfast.kernel.ids import InstanceId
from standfast.store.ports.store import Store

MOST = 40
"""Instances of one test that are compared."""

Row = dict[str, Any]


def asked(store: Store, statement: str, *values: object) -> list[Row]:
    """What a question finds that somebody asks the database itself; `{}` stands before the name of a table, `?` for a value."""
    with store.line().writer().unit() as unit, unit.lend() as lent:
        connection: Any = lent
        is_file = isinstance(connection, sqlite3.Connection)
        text = statement.format("" if is_file else "standfast.")
        cursor = connection.execute(text if is_file else text.replace("?", "%s"), values)
        names = [each[0] for each in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def assert_reported(engine: Engine, instances: Sequence[InstanceId]) -> None:
    """Compare both views with the calls of the engine, for these processes."""
    if not isinstance(engine._codec, JsonCodec):
        return
    store = engine.service.store
    for instance in instances[:MOST]:
        _assert_instance(engine, store, instance)
        _assert_events(engine, store, instance)


def _assert_instance(engine: Engine, store: Store, instance: InstanceId) -> None:
    (row,) = asked(store, "select * from {}workflow_instances where id = ?", _key(store, instance))
    seen = engine.futures.processes.get(instance).result().instance
    told = {
        "workflow_id": seen.workflow_id,
        "workflow_version": seen.workflow_version,
        "tenant_id": seen.tenant_id,
        "partition_id": seen.partition_id,
        "current_step": seen.current_step,
        "status": seen.status,
        "state": seen.state,
        "version": seen.version,
        "created_at": seen.created_at,
        "updated_at": seen.updated_at,
        "expires_at": seen.expires_at,
        "business_key": seen.business_key,
        "outcome": seen.outcome,
    }
    (first,) = asked(store, "select data from {}events where instance = ? and sequence = 1", _key(store, instance))
    if b'"has_row":true' not in bytes(first["data"]):  # It began before processes had rows.
        told |= {"current_step": None, "state": None}
    assert {name: _plain(name, row[name]) for name in told} == told, "a view tells another state than the engine"


def _assert_events(engine: Engine, store: Store, instance: InstanceId) -> None:
    statement = "select * from {}workflow_events where workflow_instance_id = ? order by sequence"
    rows = asked(store, statement, _key(store, instance))
    trail = engine.futures.processes.events(instance, with_lifecycle=True).result()
    told = [
        {
            "id": each.id,
            "step_id": each.step_id,
            "event": each.event,
            "actor_id": each.actor_id,
            "on_behalf_of": each.on_behalf_of,
            "comment": each.comment,
            "timestamp": each.timestamp,
            "category": each.category,
            "data": each.data,
        }
        for each in trail
    ]
    found = [{name: _plain(name, row[name]) for name in told[0]} for row in rows]
    assert found == told, "a view tells another trail than the engine"


def _key(store: Store, instance: InstanceId) -> object:
    return instance if store.url.startswith("postgresql") else str(instance)


def _plain(name: str, value: object) -> object:
    if isinstance(value, str) and name in {"state", "data"}:
        return json.loads(value)
    if isinstance(value, str) and (name.endswith("_at") or name == "timestamp"):
        return datetime.fromisoformat(value)
    return value

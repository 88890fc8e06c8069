"""Delete an instance that has ended."""

from __future__ import annotations

from standfast.calls.authorization import check_repairer
from standfast.calls.context import CallContext
from standfast.errors import ConflictError, NotFoundError
from standfast.kernel.ids import InstanceId
from standfast.store.records.queries import NeededError, PartError, Remains


def delete_instance(desk: CallContext, identity: InstanceId, *, force: bool, reason: str = "") -> None:
    """Delete an instance that has ended, unless it is needed."""
    check_repairer(desk)
    found = next(iter(desk.reader.headers([identity])), None)
    if desk.request.partition and found is None:
        raise NotFoundError("finished instance", identity)
    before = {} if found is None else {"definition": found.definition, "key": found.key, "status": found.status}
    change = desk.changed("instance", str(identity), "delete", before=before, reason=reason)
    try:
        is_gone = desk.record(
            change,
            lambda parts: parts.keeper().delete(identity, tenant=desk.tenant, force=force),
            check=check_repairer,
        )
    except NeededError as error:
        raise ConflictError(_needed(identity, error.remains)) from error
    except PartError as error:
        told = f"instance {identity} is a part of the workflow {error.whole}, whose rollback may have it undone"
        raise ConflictError(f"{told}; delete it once that has ended, or delete both then") from error
    if not is_gone:
        raise NotFoundError("finished instance", identity)


def _needed(identity: InstanceId, remains: Remains) -> str:
    """Why an instance is not deleted, and what to do about it."""
    effects, letters, messages, readers = remains
    reasons = [
        f"{effects} effect{' has' if effects == 1 else 's have'} still to be done" if effects else "",
        f"{letters} dead letter{' waits' if letters == 1 else 's wait'} for an operator" if letters else "",
        f"{messages} message{' waits' if messages == 1 else 's wait'} for it" if messages else "",
        *(f"the projection {name!r} has not read its events" for name in readers),
    ]
    return (
        f"instance {identity} is still needed: {', '.join(filter(None, reasons))}; wait until that is done, requeue or discard its "
        "letters, drop a projection that nobody feeds any more, or delete it with all that by force=True"
    )

"""What all calls of one tenant share: where commands go, how questions are asked, how the text that callers give is checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from standfast.calls.catalog.registry import Registry
from standfast.calls.fact_source import ReadFacts
from standfast.calls.pools import ReaderPool, ReaderPools
from standfast.calls.reply_chaining import and_then
from standfast.calls.waiters import CompletionWaiters
from standfast.engine.commit.cache import CachedInstance, folded
from standfast.engine.commit.facts import Acting, Asking, Place, StandsIn, Vouched
from standfast.engine.commit.limits import check_key, check_text
from standfast.engine.commit.submission import CommandOutcome, View
from standfast.engine.commit.unit_of_work import JointCommit
from standfast.engine.concurrency.manual_replies import ManualReply
from standfast.engine.concurrency.process_forks import INHERITED
from standfast.engine.concurrency.replies import Reply
from standfast.engine.dispatcher import Dispatcher
from standfast.errors import PayloadError, StandfastError, StoppedError, brief, indefinite
from standfast.expressions.model.characters import JOINERS, describe, is_hidden
from standfast.graph.document_checks import ENVELOPE
from standfast.graph.values.value_checks import empty_words
from standfast.kernel.actor import SYSTEM, Actor, RequestContext
from standfast.kernel.codec.message_types import is_whole
from standfast.kernel.facts import PersonFact
from standfast.kernel.ids import InstanceId
from standfast.kernel.names import MISLEADING, is_misleading
from standfast.kernel.row_kinds.changes import Change
from standfast.people.authority import Authority, authority, told_of
from standfast.people.authorization import bound
from standfast.people.capabilities import CapabilityResolver, with_capabilities, with_front_end
from standfast.people.directory import Directory
from standfast.store.ports.facts import FactLook
from standfast.store.ports.reading import TenantReader
from standfast.store.ports.store import MaintenancePort, StoreParts
from standfast.store.records.instances import SHARED_TENANT, Address, Claim, InstanceHeader, ReceiptKey
from standfast.store.sql.nonblocking import check_nonblocking, sent_off

R = TypeVar("R")
T = TypeVar("T")
_STEPS: Final = frozenset({".", ".."})

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
_LAST_SEQUENCE = 2**31 - 1
"""No history is longer."""
_LAST_NUMBER = 2**63 - 1
"""No database counts further."""


class CallContext:
    """Where the calls of one request are made: for its tenant, by its actor."""

    def __init__(  # noqa: PLR0913 - all that calls share, by name
        self,
        service: Dispatcher,
        registry: Registry,
        endings: CompletionWaiters,
        answering: ReaderPools | None,
        *,
        directory: Directory,
        request: RequestContext,
        resolvers: Sequence[CapabilityResolver] = (),
        is_looked_up: bool = False,
        connection: object = None,
        by: Acting | None = None,
    ) -> None:
        self.service = service
        self.directory = directory
        """Where people are looked up."""
        self.registry = registry
        self.endings = endings
        self._answering = answering
        """The threads on which questions are answered; None if whoever asks answers them."""
        self._resolvers = resolvers
        self._is_looked_up = is_looked_up
        """Whether the roles of the actor are those of the directory too."""
        self.request = with_front_end(with_capabilities(resolvers, checked_request(request)))
        """For whom these calls are made, with what the resolvers of capabilities grant them. Questions are judged by it."""
        self.by = by or Acting(_asked(request, resolvers))
        """For whom commands are carried out: the commit looks up what the actor may do then."""
        self.authority = Authority(actor=self.request.actor)
        """What the directory knows of the actor, if it was asked; else what the request says."""
        self.tenant = request.tenant
        self._connection = connection
        """With an open transaction of the caller's, in which commands are carried out; None for one of the engine's own."""
        self.reader = service.store.reader(request.tenant, request.partition)
        """What these calls may see: all of the tenant, or what is of the partition, if the request names one."""
        self.payload_limit = service.shared.settings.max_payload_bytes

    def acting(self, request: RequestContext) -> CallContext:
        """The desk of another request."""
        return self._another(request, None)

    def acting_as(self, who: Actor | str | RequestContext, reason: str = "") -> CallContext:
        """The desk of another request, or of the same tenant by another actor; one that is given by id alone has no rights."""
        if isinstance(who, RequestContext):
            return self.acting(replace(who, reason=reason) if reason else who)
        # What a credential says of one actor it does not say of another; nor does one speak for another.
        actor, known = checked_actor(who), replace(self.request, brought=None, claims={}, session="", expires_at=None)
        return self.acting(replace(known, actor=actor, is_late=False, reason=reason))

    def within(self, connection: object) -> CallContext:
        """The desk of the same request in a transaction that the caller has open."""
        return self._another(self.request, connection, is_looked_up=self._is_looked_up, by=self.by)

    def deciding(self, actor: Actor, stands_in: StandsIn | None) -> CallContext:
        """The desk of the same request by its actor as the directory knows them, for themselves or for somebody else."""
        if actor.kind == "system":
            return self._another(replace(self.request, actor=actor), self._connection)
        by = self.by._replace(stands_in=stands_in)
        return self._another(replace(self.request, actor=actor), self._connection, is_looked_up=True, by=by)

    def relying_on(self, names: Collection[str]) -> CallContext:
        """The desk of the same request for one command, with what the host's directory says of these people; it asks the directory.

        The engine's own directory is asked about them in the commit, and the engine itself relies on nobody.
        """
        if not names or not self.directory.changes_unseen or self.request.actor.kind == "system":
            return self
        if self.must_ask:
            return self._looked_up().relying_on(names)
        assert self.by.vouched is not None
        by = self.by._replace(vouched=replace(self.by.vouched, people=self.told_of(names)))
        return self._another(self.request, self._connection, is_looked_up=True, by=by)

    def told_of(self, names: Collection[str]) -> tuple[PersonFact, ...]:
        """What the directory says of people now; it asks the directory."""
        return told_of(self.directory, self.tenant, names, self.service.shared.clock.now())

    def needing(self, *capabilities: str) -> CallContext:
        """The desk of the same request, whose actor must have these capabilities in the transaction that acts too."""
        if self.request.actor.kind == "system":
            return self
        by = self.by._replace(asked=replace(self.asked, needs=self.asked.needs.union(capabilities)))
        return self._another(self.request, self._connection, is_looked_up=self._is_looked_up, by=by)

    @property
    def asked(self) -> RequestContext:
        """The request as its caller made it, without what was looked up for it."""
        return self.by.asked

    @property
    def vouched(self) -> Vouched | None:
        """What the host's directory has said of the actor, for this request; None if it was not asked."""
        return self.by.vouched

    @property
    def grants_capabilities(self) -> bool:
        """Whether roles and claims may have capabilities here."""
        return bool(self._resolvers)

    def bound_to(self, bearer: Actor, granted: frozenset[str], tenant: str) -> Actor:
        """The bearer of a key with no more than a person has who has these roles."""
        return bound(bearer, granted, tenant, self._resolvers)

    @property
    def must_ask(self) -> bool:
        """Whether the host's directory has to be asked before the actor can act."""
        return self.directory.changes_unseen and self.by.vouched is None and self.request.actor.kind != "system"

    @property
    def may_hold_more(self) -> bool:
        """Whether the directory may know of roles of the actor that somebody has granted capabilities to."""
        return self.may_have_roles and bool(self._resolvers or self.request.role_capabilities)

    @property
    def may_have_roles(self) -> bool:
        """Whether the directory may know of roles of the actor that these calls do not know of."""
        if self._is_looked_up or self.request.actor.kind == "system":
            return False
        return not self.directory.is_known_empty(self.tenant, self.service.shared.clock.now())

    def looked_up(self) -> CallContext:
        """The desk of the same request with the roles that the directory has for its actor, and what these may do; it asks the directory."""
        return self._looked_up() if self.may_hold_more else self

    def with_roles(self) -> CallContext:
        """The same, also where roles grant no capabilities: fields may be visible to them. ForbiddenError if the actor is deactivated."""
        return self._looked_up() if self.may_have_roles else self

    def _looked_up(self) -> CallContext:
        check_nonblocking()
        now = self.service.shared.clock.now()
        known = authority(self.directory, self.request, now)
        asked = replace(self.request, actor=known.actor)
        desk = self._another(asked, self._connection, is_looked_up=True, by=self._vouched(known, now))
        desk.authority = replace(known, actor=desk.request.actor)
        return desk

    def _vouched(self, known: Authority, now: datetime) -> Acting:
        """What a commit is told of the actor: of the host's directory, which it cannot ask itself, what that has said."""
        if not self.directory.changes_unseen:
            return self.by
        asked, actor = self.by.asked, known.actor
        brought = replace(asked.actor, roles=asked.actor.roles | actor.roles)
        told = actor.roles - asked.actor.roles
        vouched = Vouched(at=now, roles=told, directory=self.directory.name)
        vouched = replace(vouched, is_known=known.is_known, is_person=known.is_person, granted=known.granted)
        return self.by._replace(asked=replace(asked, actor=brought, vouched=vouched.roles), vouched=vouched)

    def known(self, call: Callable[[CallContext], Reply[T]]) -> Reply[T]:
        """Have a call made by the actor as the directory knows them, where that makes a difference."""
        return self._with_directory(call) if self.may_hold_more else call(self)

    def vouched_for(self, call: Callable[[CallContext], Reply[T]]) -> Reply[T]:
        """Have a call made when the host's directory has said what the actor is, if there is one."""
        return self._with_directory(call) if self.must_ask else call(self)

    def _with_directory(self, call: Callable[[CallContext], Reply[T]]) -> Reply[T]:
        check_nonblocking()  # The call goes on where the directory has answered, which may be here.
        # What is done on a connection of the caller's is done on the caller's thread.
        looked = answered(Reply[CallContext](), self._looked_up) if self.is_within else self.consult(self._looked_up)
        return and_then(looked, call, self.reply())

    def _another(
        self, request: RequestContext, connection: object, *, is_looked_up: bool = False, by: Acting | None = None
    ) -> CallContext:
        return CallContext(
            self.service,
            self.registry,
            self.endings,
            self._answering,
            directory=self.directory,
            request=request,
            resolvers=self._resolvers,
            is_looked_up=is_looked_up,
            connection=connection,
            by=by,
        )

    @property
    def is_within(self) -> bool:
        """Whether the commands of this desk are carried out in a transaction that the caller has open."""
        return self._connection is not None

    @property
    def has_readers(self) -> bool:
        """Whether what is asked of the database is asked on other threads than the caller's."""
        return self._answering is not None and not self.is_within and not self.service.store.is_lent

    def address(self, definition: str = "", key: str = "", *, instance: InstanceId | None = None) -> Address:
        """Where a command goes. What is of another partition than the request names is not there; a key is one of that partition."""
        return Address(
            tenant=self.tenant, definition=definition, key=key, instance=instance, partition=self.request.partition
        )

    def command(  # noqa: PLR0913 - all that can be said about a command, by name
        self,
        address: Address,
        command: object,
        answer: Callable[[CommandOutcome], T],
        *,
        comment: str = "",
        receipt: ReceiptKey | None = None,
        said: object = None,
        claim: Claim | None = None,
        may_create: bool = True,
        definition_version: str = "",
        parent: InstanceId | None = None,
        view: View | None = None,
        is_unasked: bool = False,
    ) -> Reply[T]:
        """Have a command carried out; `answer` makes of what came of it what the caller is told, on the thread that brings it.

        `view` makes part of the outcome of the instance as the command leaves it. `is_unasked`: the engine does it by itself, which is no act.
        """
        if self.must_ask:
            return self._with_directory(
                lambda desk: desk.command(
                    address,
                    command,
                    answer,
                    comment=comment,
                    receipt=receipt,
                    said=said,
                    claim=claim,
                    may_create=may_create,
                    definition_version=definition_version,
                    parent=parent,
                    view=view,
                )
            )
        early = None if self.registry.rate is None else self.registry.rate.refusal(self.tenant, command)
        if early is not None:
            return failed(early)
        try:
            checked_text(comment, "comment")
        except StandfastError as error:
            return failed(error)
        reply: Reply[T] = self.reply()

        def settled(outcome: CommandOutcome | None, error: BaseException | None) -> None:
            if error is not None:
                reply.set_error(error)
            else:
                assert outcome is not None
                reply.set_result(answer(outcome))

        sent_off()
        self.service.execute(
            address,
            command,
            by=self.by,
            comment=comment,
            receipt=receipt,
            said=said,
            claim=claim,
            may_create=may_create,
            definition_version=definition_version,
            parent=parent,
            connection=self._connection,
            view=view,
            is_unasked=is_unasked,
            settled=settled,
        )
        return reply

    def join(self, work: Callable[[JointCommit], T]) -> T:
        """Have several commands carried out in one transaction: the caller's, if this desk is within one, or one of the engine's own."""
        return self.service.joints.run(work, self._connection)

    def reply(self) -> Reply[T]:
        """An answer to come: from the engine's threads, or, if it has none, from whoever drives it."""
        return Reply() if self.service.has_threads else ManualReply()

    def changed(
        self,
        subject: str,
        name: str,
        action: str,
        *,
        before: Mapping[str, object] = _NOTHING,
        after: Mapping[str, object] = _NOTHING,
        reason: str = "",
        tenant: str = "",
    ) -> Change:
        """Make the audit entry of a change by the actor of this request, for `record`. It keeps only the values that differ."""
        actor = self.request.actor
        is_other = {key for key in {*before, *after} if before.get(key) != after.get(key)}
        return Change(
            tenant=tenant or self.tenant,
            subject=subject,
            name=name,
            action=action,
            before={key: value for key, value in before.items() if key in is_other},
            after={key: value for key, value in after.items() if key in is_other},
            reason=checked_text(reason, "reason") or self.request.reason,
            actor=actor.id,
            on_behalf_of=actor.on_behalf_of,
            trace=self.request.trace,
            at=self.service.shared.clock.now(),
            mark=self.service.new_cause(),
        )

    def record(
        self,
        change: Change | Callable[[T], Change | Sequence[Change] | None],
        work: Callable[[StoreParts], T],
        *,
        may_repeat: bool = False,
        check: Callable[[CallContext], None] | None = None,
        needs_right: bool = True,
    ) -> T:
        """Do the work and write its audit entry, in one transaction with a look at who may do it; see `operate`.

        `change` is the entry, or makes it, or several, from the result of the work. No entry is written if it makes none, or if the work
        returns False: then nothing was changed. Without `needs_right` the actor is not looked up.
        """

        def both(parts: StoreParts) -> T:
            result = work(parts)
            made = change(result) if callable(change) else change
            entries = () if made is None or result is False else (made,) if isinstance(made, Change) else made
            for entry in entries:
                parts.changes().add(entry)
            return result

        def together(parts: StoreParts) -> T:
            with parts.together():
                return both(parts)

        if self.request.actor.kind == "system" or not needs_right:
            return self.service.operate(together, may_repeat=may_repeat)
        return self.operate(both, may_repeat=may_repeat, check=check)

    def keep(
        self,
        work: Callable[[MaintenancePort], T],
        *,
        may_repeat: bool = False,
        is_patient: bool = True,
        check: Callable[[CallContext], None] | None = None,
    ) -> T:
        """Have work of an operator done, on the connection that is kept for it."""
        return self.operate(
            lambda parts: work(parts.keeper()), may_repeat=may_repeat, is_patient=is_patient, check=check
        )

    def operate(
        self,
        work: Callable[[StoreParts], T],
        *,
        may_repeat: bool = False,
        is_patient: bool = True,
        check: Callable[[CallContext], None] | None = None,
    ) -> T:
        """Have work done that no decider decides, in one transaction with a look at who may do it. ForbiddenError if the actor may not.

        `check` is given the desk of the actor as they are in that transaction, and raises what bars them.
        """
        if self.request.actor.kind == "system":
            return self.service.operate(work, may_repeat=may_repeat, is_patient=is_patient)
        desk = self._looked_up() if self.must_ask else self

        def authorized(parts: StoreParts) -> T:
            with parts.together() as look:
                acting = desk._authorized(look)  # noqa: SLF001 - it is one of these
                if check is not None:
                    check(acting)
                return work(parts)

        return self.service.operate(authorized, may_repeat=may_repeat, is_patient=is_patient)

    def _authorized(self, look: FactLook) -> CallContext:
        """The desk of the actor with the rights that a transaction finds; ForbiddenError if they may not act."""
        by = self.by
        asking = Asking(request=by.asked, tenant=self.tenant, stands_in=by.stands_in, vouched=by.vouched)
        now = self.service.shared.clock.now()
        found = self.service.around.facts.authorise(look, asking, now, may_remember=False)
        return self._another(found.request, None, is_looked_up=True, by=by)

    def read(self, question: Callable[[], T], reply: Reply[T] | None = None) -> Reply[T]:
        """Ask the database: on a thread for reading, or here if the engine has none, or if that thread would wait for this one.

        The answer goes into the reply, if one is given.
        """
        answering = self._answering
        readers = None if answering is None else answering.readers
        if answering is not None and self.may_hold_more:  # Rights may have to be looked up.
            readers = answering.consultants
        return self._ask(readers, question, Reply() if reply is None else reply)

    def act(self, work: Callable[[], T]) -> Reply[T]:
        """Have work done that no decider decides, where `operate` may ask the directory."""
        return self.consult(work) if self.must_ask else self.read(work)

    def consult(self, question: Callable[[], T]) -> Reply[T]:
        """Ask something for which people have to be looked up, on a thread that may be kept waiting by a directory.

        No question of the database may be open meanwhile: others wait for its connection.
        """
        return self._ask(None if self._answering is None else self._answering.consultants, question, Reply())

    def play(self, question: Callable[[], T]) -> Reply[T]:
        """Have something tried out, which takes a processor for a while."""
        return self._ask(None if self._answering is None else self._answering.players, question, Reply())

    def _ask(self, readers: ReaderPool | None, question: Callable[[], T], reply: Reply[T]) -> Reply[T]:
        if self.service.is_inherited:
            reply.set_error(StoppedError(INHERITED))
            return reply
        if readers is None or self.service.store.is_lent:
            return answered(reply, question)
        sent_off()
        readers.ask(question, reply)
        return reply

    def look(self, question: Callable[[TenantReader], T]) -> Reply[T]:
        """Ask the database several things, all of them as of one moment."""

        def look() -> T:
            with self.reader.look() as reader:
                return question(reader)

        return self.read(look)

    def facts(self, header: InstanceHeader) -> ReadFacts:
        """What decisions about an instance can read from outside of it, for questions that no commit answers."""
        return ReadFacts(self.service, Place(header.tenant, header.partition))

    def look_for(
        self, question: Callable[[CallContext, TenantReader], T], *, needs_roles: Callable[[TenantReader], bool]
    ) -> Reply[T]:
        """Ask the database several things for the actor. The directory is asked for their roles only if these matter, and before the database is open."""
        if not self.may_have_roles:
            return self.look(lambda reader: question(self, reader))

        def look(reader: TenantReader) -> tuple[T] | None:
            return None if needs_roles(reader) else (question(self, reader),)

        def look_with_roles() -> T:
            desk = self.with_roles()
            with desk.reader.look() as reader:
                return question(desk, reader)

        def go_on(found: tuple[T] | None) -> Reply[T]:
            return self.consult(look_with_roles) if found is None else Reply.of(found[0])

        return and_then(self.look(look), go_on, self.reply())

    def read_for(
        self,
        question: Callable[[], R],
        answer: Callable[[R, CallContext], T],
        *,
        needs_roles: Callable[[R], bool],
        is_patient: bool = False,
    ) -> Reply[T]:
        """Ask the database, and make the answer for the actor of this desk. The directory is asked for their roles only if these matter.

        `is_patient` if the question itself may wait for the directory.
        """

        def go_on(found: R) -> Reply[T]:
            if self.may_have_roles and needs_roles(found):
                return self.consult(lambda: answer(found, self.with_roles()))
            return answered(Reply(), lambda: answer(found, self))

        found = self.consult(question) if is_patient else self.read(question)
        return and_then(found, go_on, self.reply())

    def seen(self, reader: TenantReader, header: InstanceHeader) -> CachedInstance | None:
        """An instance whose row was just read, as its events tell it: from memory if it is there. Nobody may change it, and its row may be older."""
        program = self.registry.get(header.tenant, header.definition, header.definition_version)
        known = self.service.shared.folds.find(header, program)
        if known is not None:
            return known
        found = self.folded(reader, self.address(instance=header.id))
        if found is not None and header.kind != ENVELOPE:  # What is redacted of a document must be gone.
            self.service.shared.folds.keep(found)
        return found

    def folded(self, reader: TenantReader, address: Address) -> CachedInstance | None:
        """An instance as its events tell it; None if there is none."""
        loaded = reader.load(address)
        if loaded is None:
            return None
        header = loaded.header
        program = self.registry.get(header.tenant, header.definition, header.definition_version)
        return folded(loaded, program, lambda: reader.load(address, whole=True))


def _asked(request: RequestContext, resolvers: Sequence[CapabilityResolver]) -> RequestContext:
    """A request as its credential says it. What comes with it ends with it, also what resolvers read in its claims."""
    actor = request.brought or request.actor
    if request.claims and resolvers:
        bare = replace(request, actor=replace(actor, capabilities=frozenset(), roles=frozenset()))
        claimed = with_capabilities(resolvers, bare).actor.capabilities
        told = with_capabilities(resolvers, replace(bare, claims={})).actor.capabilities
        actor = replace(actor, capabilities=actor.capabilities | (claimed - told))
    if request.expires_at is not None and not actor.key:
        actor = replace(actor, until=request.expires_at)
    return request if actor is request.actor else replace(request, actor=actor, brought=None)


def told_at(at: datetime | None) -> str | None:
    """An instant as a change tells it."""
    return None if at is None else at.isoformat()


def nothing(_outcome: CommandOutcome) -> None:
    """The answer to a command of which the caller only wants to know that it was carried out."""


def answered(reply: Reply[T], question: Callable[[], T]) -> Reply[T]:
    """The reply with the answer to a question, or with its error."""
    try:
        value = question()
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
        reply.set_error(error)
    else:
        reply.set_result(value)
    return reply


def failed(error: BaseException) -> Reply[T]:
    """A reply that is an error already."""
    reply: Reply[T] = Reply()
    reply.set_error(error)
    return reply


def checked_key(given: object, what: str, *, may_be_empty: bool = False) -> str:
    """Text that every database can keep as a key."""
    if may_be_empty and given == "":
        return ""
    if not isinstance(given, str) or not given:
        raise PayloadError(f"the {what} must be {'' if may_be_empty else 'non-empty '}text, not {brief(given)}")
    check_key(given, what)
    return given


def checked_id(given: object, what: str, *, may_be_empty: bool = False) -> str:
    """Text that something new is addressed by. However they are escaped, `.` and `..` lead elsewhere in an address."""
    found = checked_key(given, what, may_be_empty=may_be_empty)
    if found in _STEPS:
        raise PayloadError(f"the {what} cannot be {found!r}, which leads elsewhere in an address; take another one")
    return found


def checked_bare(given: object, what: str) -> str:
    """The name of a person or a role alone, as questions look for it."""
    name = checked_id(given, what)
    if name.startswith(("role:", "user:")):
        raise PayloadError(
            f"the {what} cannot begin as {name!r} does: that is how people and roles are told apart; give the name alone"
        )
    if not name.strip():
        raise PayloadError(f"the {what} is blank; give one that people can read")
    return name


def checked_name(given: object, what: str) -> str:
    """Text that something is published under."""
    name = checked_key(given, what)
    hidden = next((each for each in name if is_hidden(each) and each not in JOINERS), None)
    if hidden is not None:
        raise PayloadError(f"the {what} holds {describe(hidden)}; remove it")
    if is_misleading(name):
        raise PayloadError(f"the {what}, {name!r}, {MISLEADING}")
    return name


def checked_tenant(given: object) -> str:
    """The name of a tenant."""
    tenant = checked_key(given, "tenant")
    if tenant == SHARED_TENANT:
        raise PayloadError(f"{tenant!r} is not a tenant: it owns the definitions that all tenants share")
    return tenant


def checked_actor(given: object) -> Actor:
    """Who acts. Rights are said, never inherited: whoever is given by id alone has none."""
    if isinstance(given, RequestContext):
        raise PayloadError(
            "a request names a tenant, and these calls stay with theirs: "
            "give an Actor here, or ask the engine itself with `engine.acting(request)`"
        )
    if not isinstance(given, Actor | str):
        raise PayloadError(f"the actor must be an Actor, or an id as text, not {brief(given)}")
    return given if isinstance(given, Actor) else Actor(id=checked_key(given, "actor"))


def checked_person(name: str) -> str:
    """The name of somebody whom the world outside may come as: nobody is told like the engine itself."""
    if name.strip() == SYSTEM.id:
        raise PayloadError(
            f"{name!r} is what the engine itself is called in histories; give a person or a program another name"
        )
    return name


def checked_request(given: object) -> RequestContext:
    """For whom something is asked, in text that every database can keep."""
    if not isinstance(given, RequestContext) or not isinstance(given.actor, Actor):
        raise PayloadError(f"give a RequestContext with an Actor, not {given!r}")
    checked_tenant(given.tenant)
    checked_key(given.partition, "partition", may_be_empty=True)
    checked_key(given.trace, "trace", may_be_empty=True)
    checked_key(given.idempotency_key, "idempotency key", may_be_empty=True)
    checked_text(given.reason, "reason")
    actor = given.actor
    if not isinstance(given.claims, dict):
        raise PayloadError(f"the claims of a request are a dict, not {indefinite(type(given.claims))}")
    if actor is not SYSTEM:
        checked_key(actor.id, "actor")
        checked_key(actor.on_behalf_of, "name of whom the actor stands in for", may_be_empty=True)
        for each in (*actor.roles, *actor.capabilities):
            checked_key(each, "role or capability")
    return given


def checked_text(given: object, what: str) -> str:
    """Text that a person wrote, which every database can keep."""
    if given == "":
        return ""
    if not isinstance(given, str):
        raise PayloadError(f"the {what} must be text, not {brief(given)}")
    check_text(given, what)
    return given


def checked_some(given: Sequence[T] | None, what: str, *, then: str) -> Sequence[T]:
    """A list that says what something is done to; () if it is left out. Whoever gives an empty one does not mean all: PayloadError."""
    if given is None:
        return ()
    several: object = given  # What a caller without types gave.
    if isinstance(several, Sequence) and not len(several):
        raise PayloadError(empty_words(f"`{what}`", then))
    return given


def checked_flag(given: object, what: str) -> bool:
    """Yes or no: anything else, such as the text "no", would count as yes."""
    if isinstance(given, bool):
        return given
    raise PayloadError(f"{what} must be True or False, not {given!r}")


def checked_instant(given: object, what: str) -> datetime | None:
    """An instant that a list or a period begins or ends at, if there is one."""
    if given is None:
        return None
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise PayloadError(
            f"{what} must be a datetime with a time zone, such as datetime(..., tzinfo=UTC), not {brief(given)}"
        )
    try:
        return given.astimezone(UTC)
    except OverflowError:
        raise PayloadError(f"{what} is {given}, outside of the years 1 to 9999, counted in UTC") from None


def checked_last(given: object, kind: type[T], what: str) -> T | None:
    """The last thing of the page before, if there was one."""
    if given is None or isinstance(given, kind):
        return given
    raise PayloadError(f"{what} must be the last one of the page before, {indefinite(kind)}, not {given!r}")


def checked_limit(given: object) -> int:
    """How many things a page may hold at most."""
    return _checked_number(given, "the limit", least=1, most=_LAST_SEQUENCE)


def checked_span(after: object, limit: object) -> tuple[int, int | None]:
    """The part of a history that comes after a sequence, up to a limit if there is one."""
    return checked_after(after, most=_LAST_SEQUENCE), None if limit is None else checked_limit(limit)


def checked_after(given: object, *, most: int = _LAST_NUMBER) -> int:
    """The number of the last thing before a page; 0 before the first one."""
    return _checked_number(given, "`after`", least=0, most=most)


def checked_at(given: object) -> int:
    """The sequence of an event."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise PayloadError(f"`at` is the sequence of an event, as `history` tells it, not {given!r}")
    return _checked_number(given, "`at`", least=0, most=_LAST_NUMBER)


def checked_before(given: object) -> int:
    """The number of the first thing after a page."""
    return _checked_number(given, "`before`", least=1, most=_LAST_NUMBER)


def _checked_number(given: object, what: str, *, least: int, most: int) -> int:
    if not is_whole(given, least=least, most=most) or isinstance(given, bool):
        raise PayloadError(f"{what} must be a whole number from {least} to {most}, not {given!r}")
    return cast("int", given)

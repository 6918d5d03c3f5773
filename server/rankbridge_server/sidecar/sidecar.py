"""Putting one rank together: backend, links, core and server."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Sequence

from ..core.audit import Audit
from ..core.coordinator import Backend, GroupDescription
from ..core.events import Kind
from ..core.functions.functions import Functions
from ..core.functions.raised import place_of
from ..core.groups import forming
from ..core.hold.holds import Hook
from ..core.links import LinkMaker
from ..core.logger import LOGGER
from ..core.metrics import Family, Metrics
from ..core.queues import host
from ..core.rank import Identity, Rank
from ..core.record.record import Record
from ..core.record.script_calls import ScriptCalls
from ..service.debug import LookInside
from ..service.gang import Dialling, form_gang, make_group
from ..service.server import Server
from . import logs, traces
from .kept_record import KeptRecord
from .observers import MODE, Observers
from .settings import RankSettings
from .tls import serving
from .traces import Traces


class Sidecar:
    """A rank that serves. Raises OSError when an address cannot be had."""

    def __init__(
        self,
        identity: Identity,
        backend: Backend,
        make_links: LinkMaker,
        settings: RankSettings,
        lost: Callable[[], object] = lambda: None,
        formed: Callable[[int], object] = lambda generation: None,
        functions: Functions | None = None,
        hook: Hook | None = None,
        look_inside: LookInside = lambda pid, states: (),
        record_calls: Callable[[ScriptCalls], Callable[[], None]] | None = None,
    ) -> None:
        """`lost`: called when a generation ends because a rank was lost. `formed`: with each new one's number.

        `functions`: the user's own; None: there are none. `hook`: as of `Holds`. `look_inside`: gives the threads
        of other processes of this host. `record_calls`: makes what the user's code calls of torch.distributed come to
        the rank's record, until what it returns is called; None: it does not.
        """
        if settings.own_process:
            _open_many_files()
        tls, tokens = settings.tls, settings.tokens
        self._traces = Traces(identity.rank) if traces.asked_for() else None
        self._observers = Observers(settings.observe, identity) if settings.observe else None
        record = Record(
            settings.limits.max_record, self._observers.record if self._observers is not None else None, MODE
        )
        self._rank = Rank(
            identity,
            backend,
            make_links,
            limits=settings.limits,
            default_timeout=settings.default_timeout,
            data_timeout=settings.data_timeout,
            lost=lost,
            host_id=None if settings.share_memory else host.alone(),
            share_memory=settings.share_memory,
            metrics=Metrics() if settings.metrics else None,
            trace=self._traces.done if self._traces is not None else None,
            functions=functions,
            script=(lambda: "") if settings.own_process else _script,
            hook=hook,
            record=record,
        )
        audit = Audit(settings.audit, identity.rank) if settings.audit else None
        if audit is not None:
            self._rank.events.notes.append(audit.happened)
        self._dialling = Dialling(
            (lambda: tls().dialling()) if tls else None, (lambda: tokens().peer) if tokens else None
        )
        self._server = Server(
            self._rank,
            settings.listen,
            settings.limits.max_pending,
            serving=serving(tls) if tls else None,
            dialling=self._dialling,
            tokens=tokens,
            certificates=tls().roles if tls else None,
            audit=audit,
            observed=self._observers.socket if self._observers is not None else "",
            look_inside=look_inside,
        )
        self._rank.events.notes.append(logs.log_event)
        self._rank.events.notes.append(lambda it: formed(it.generation) if it.kind is Kind.FORMED else None)
        self._server.start()
        self._end_calls = record_calls(self._rank.script_calls) if record_calls is not None else None
        self._kept: KeptRecord | None = None
        if self._observers is not None:
            self._kept = KeptRecord(self._rank, record, self._server.state, self._observers.folder)
            self._observers.publish()
        LOGGER.info("it serves, and waits to be formed", extra={"rank": identity.rank, "event": "serving"})

    @property
    def endpoints(self) -> list[str]:
        """GRPC targets at which it serves."""
        return list(self._server.endpoints)

    def metrics(self) -> list[Family]:
        """What the rank has counted, and what it holds and is."""
        return self._rank.metrics()

    def form(
        self, targets: Sequence[str], timeout: float, groups: Sequence[GroupDescription] = ()
    ) -> forming.Formed:
        """Form the next generation of the ranks behind `targets`, in `timeout` seconds. Raises BridgeError."""
        return form_gang(targets, groups, timeout, dialling=self._dialling)

    def new_group(self, targets: Sequence[str], group: GroupDescription, timeout: float) -> None:
        """Make a group in the generation of the ranks behind `targets`, as a controller would. Raises BridgeError."""
        make_group(targets, group, timeout, dialling=self._dialling)

    def stop(self) -> None:
        """Ends the generation, answers pending operations, and stops serving."""
        if self._end_calls is not None:
            self._end_calls()
        self._rank.close("the rank stops")
        if self._kept is not None:
            self._kept.stop()
        self._server.stop(grace=0.5)
        if self._observers is not None:
            self._observers.remove()
        if self._traces is not None:
            self._traces.close()


def _script() -> str:
    return place_of(threading.main_thread().ident or 0)


def _open_many_files() -> None:
    """Lets this process open as many files as it may, which is more than a shell lets it.

    A rank has a link from every member of the groups that it leads, and strangers who connect must leave it enough.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

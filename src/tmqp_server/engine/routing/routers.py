"""Routers and their bindings: the table of them, and the operations on them.

A router is a list of bindings, the highest priority first, or a custom router, which is a user's
class (``custom.py``).  ``publishing.py`` delivers their messages.
"""

from __future__ import annotations

from tmqp.constants import (
    RESULT_BAD_REQUEST,
    RESULT_NOT_FOUND,
    RESULT_OK,
    RESULT_UNAUTHORIZED,
)
from tmqp.names import fault_of_name
from tmqp_server.engine.books import binding_bytes, router_bytes
from tmqp_server.engine.commands import (
    AddBinding,
    Command,
    CreateRouter,
    ListBindings,
    ListRouters,
    RemoveBinding,
    RemoveRouter,
    RestoreRouter,
    SetRouterEnabled,
)
from tmqp_server.engine.core import Core, Performers
from tmqp_server.engine.effects import ForgetRouter, StoreRouter
from tmqp_server.engine.model.channel_names import is_channel_name
from tmqp_server.engine.model.sessions import Session
from tmqp_server.engine.model.snapshots import RouterSnapshot
from tmqp_server.engine.options import TO_QUEUE, TO_URL, BindingOptions
from tmqp_server.engine.routing.custom import CustomRouter
from tmqp_server.engine.routing.http_rules import HttpRules

__all__ = ["Binding", "Router", "Routing", "problem_of_binding"]

#: The greatest number of a method of HTTP bindings, DELETE (F120).
_LAST_HTTP_METHOD = 4


class Binding:
    """One binding.

    ``turn`` counts the messages that a direct binding with the method round robin has sent;
    ``gone`` means that it was removed while a message may still have to be offered to it.
    """

    __slots__ = ("gone", "options", "turn")

    def __init__(self, options: BindingOptions) -> None:
        self.options = options
        self.turn = 0
        self.gone = False


class Router:
    """One router; ``turn`` is the place in ``bindings`` where round robin continues.

    ``custom`` is the user's object that routes instead of bindings, or None.
    """

    __slots__ = ("bindings", "custom", "enabled", "method", "name", "turn")

    def __init__(self, name: str, method: int, custom: CustomRouter | None = None) -> None:
        self.name = name
        self.method = method
        self.custom = custom
        self.enabled = True
        self.bindings: list[Binding] = []
        self.turn = 0

    def find(self, name: str) -> int:
        """The index of a binding; -1 if there is none of that name."""
        for place, binding in enumerate(self.bindings):
            if binding.options.name == name:
                return place
        return -1

    def add(self, binding: Binding) -> None:
        """Insert a binding after all those of its priority or a higher one."""
        place = 0
        for other in self.bindings:
            if other.options.priority < binding.options.priority:
                break
            place += 1
        self.bindings.insert(place, binding)
        self.turn = 0

    def remove(self, place: int) -> None:
        """Remove a binding."""
        self.bindings[place].gone = True
        del self.bindings[place]
        self.turn = 0


def problem_of_binding(options: BindingOptions, rules: HttpRules, max_name_bytes: int) -> int:
    """0 if messages can be sent to the target of *options*, else the result code to answer."""
    if options.kind == TO_URL:
        method = options.content_type
        problem = rules.problem_of(options.target)
        if problem == RESULT_OK and method is not None and not 0 <= method <= _LAST_HTTP_METHOD:
            problem = RESULT_BAD_REQUEST
        return problem
    if not options.target or fault_of_name(options.target):
        return RESULT_BAD_REQUEST
    if options.kind == TO_QUEUE and not is_channel_name(options.target, max_name_bytes):
        return RESULT_BAD_REQUEST
    if len(options.target.encode("utf-8", "surrogatepass")) > max_name_bytes:
        return RESULT_BAD_REQUEST
    return RESULT_OK


class Routing:
    """The routers of one broker."""

    __slots__ = ("_core", "_routers", "left_out", "rules")

    def __init__(self, core: Core) -> None:
        self._core = core
        #: Which URLs HTTP bindings may call.
        self.rules = HttpRules(core.options.http_prefixes)
        #: By name, in the order of creation; the case counts (F46).
        self._routers: dict[str, Router] = {}
        core.tables["routers"] = self._routers
        #: Router and name of each binding that was left out.
        self.left_out: list[tuple[str, str]] = []

    def find(self, name: str) -> Router | None:
        """The router of that name, or None."""
        return self._routers.get(name)

    def add_custom(self, name: str, custom: CustomRouter) -> None:
        """Add a user's router.

        :raises ValueError: if the name is invalid or taken.
        """
        if not is_channel_name(name, self._core.limits.max_name_bytes):
            raise ValueError(f"{name!r} is not a router name")
        if name in self._routers:
            raise ValueError(f"there are two routers named {name!r}")
        self._routers[name] = Router(name, 0, custom)

    def enable(self, name: str, enabled: bool) -> bool:
        """Enable or disable a router; return False if there is none of that name."""
        router = self._routers.get(name)
        if router is None:
            return False
        if router.enabled != enabled:
            router.enabled = enabled
            if router.custom is None:
                self._keep(router)
        return True

    def _reply(self, session: Session, request: object, code: int, body: object = None) -> None:
        self._core.reply(session, request, code, body)

    def _keep(self, router: Router) -> None:
        """Have a new or changed router saved."""
        if self._core.stores:
            bindings = [binding.options for binding in router.bindings]
            self._core.keep(StoreRouter(router.name, router.method, bindings, router.enabled))

    def restore(self, command: RestoreRouter) -> None:
        """Restore a router.

        If there is a custom router of that name, it is used instead; bindings that are no longer
        allowed are left out.
        """
        if command.router in self._routers:
            return
        router = Router(command.router, command.method)
        self._core.charge(router_bytes(command.router))
        router.enabled = command.enabled
        most = self._core.limits.max_name_bytes
        for options in command.bindings:
            if problem_of_binding(options, self.rules, most) == RESULT_OK:
                router.bindings.append(Binding(options))
                self._core.charge(binding_bytes(options))
            else:
                self.left_out.append((command.router, options.name))
        self._routers[command.router] = router

    def performers(self) -> Performers:
        """Which method serves which command."""
        return {
            CreateRouter: self.create_router,
            RemoveRouter: self.remove_router,
            ListRouters: self.list_routers,
            AddBinding: self.add_binding,
            RemoveBinding: self.remove_binding,
            ListBindings: self.list_bindings,
            SetRouterEnabled: self.set_enabled,
        }

    # --- Operations ------------------------------------------------------------------------------

    def create_router(self, command: Command, session: Session) -> None:
        """Create a router (F60)."""
        assert isinstance(command, CreateRouter)
        limits = self._core.limits
        code = RESULT_OK
        if command.router in self._routers:
            pass
        elif not is_channel_name(command.router, limits.max_name_bytes):
            code = RESULT_BAD_REQUEST
        elif len(self._routers) >= limits.max_routers:
            code = self._core.reached("max_routers")
        elif not self._core.has_room(router_bytes(command.router)):
            code = self._core.no_room()
        else:
            router = Router(command.router, command.method)
            self._core.charge(router_bytes(command.router))
            self._routers[command.router] = router
            self._keep(router)
        self._reply(session, command.request, code)

    def remove_router(self, command: Command, session: Session) -> None:
        """Remove a router (F60)."""
        assert isinstance(command, RemoveRouter)
        router = self._routers.get(command.router)
        code = RESULT_OK
        if router is not None:
            if router.custom is not None:
                code = RESULT_UNAUTHORIZED
            else:
                del self._routers[command.router]
                if self._core.stores:
                    self._core.keep(ForgetRouter(command.router))
                self._core.refund(router_bytes(command.router))
                for binding in router.bindings:
                    binding.gone = True
                    self._core.refund(binding_bytes(binding.options))
        self._reply(session, command.request, code)

    def set_enabled(self, command: Command, session: Session) -> None:
        """Enable or disable a router (F123)."""
        assert isinstance(command, SetRouterEnabled)
        found = self.enable(command.router, command.enabled)
        self._reply(session, command.request, RESULT_OK if found else RESULT_NOT_FOUND)

    def list_routers(self, command: Command, session: Session) -> None:
        """All routers (F60)."""
        assert isinstance(command, ListRouters)
        body: list[RouterSnapshot] = []
        for router in self._routers.values():
            body.append(RouterSnapshot(router.name, router.method, router.enabled))
        self._reply(session, command.request, RESULT_OK, body)

    def add_binding(self, command: Command, session: Session) -> None:
        """Add a binding (F60, F61)."""
        assert isinstance(command, AddBinding)
        self._reply(session, command.request, self._add_binding(command))

    def _add_binding(self, command: AddBinding) -> int:
        limits = self._core.limits
        options = command.binding
        problem = problem_of_binding(options, self.rules, limits.max_name_bytes)
        if options.kind == TO_URL and problem != RESULT_OK:
            return problem  # a client that may not call the URL must not learn which routers exist
        router = self._routers.get(command.router)
        if router is None:
            return RESULT_NOT_FOUND
        if router.custom is not None:
            return RESULT_UNAUTHORIZED
        if problem != RESULT_OK or not is_channel_name(options.name, limits.max_name_bytes):
            return RESULT_BAD_REQUEST
        if router.find(options.name) >= 0:
            return RESULT_OK
        if len(router.bindings) >= limits.max_bindings_per_router:
            return self._core.reached("max_bindings_per_router")
        size = binding_bytes(options)
        if not self._core.has_room(size):
            return self._core.no_room()
        self._core.charge(size)
        router.add(Binding(options))
        self._keep(router)
        return RESULT_OK

    def remove_binding(self, command: Command, session: Session) -> None:
        """Remove a binding (F60)."""
        assert isinstance(command, RemoveBinding)
        router = self._routers.get(command.router)
        place = -1 if router is None else router.find(command.binding)
        code = RESULT_NOT_FOUND
        if router is not None and router.custom is not None:
            code = RESULT_UNAUTHORIZED
        elif router is not None and place >= 0:
            self._core.refund(binding_bytes(router.bindings[place].options))
            router.remove(place)
            self._keep(router)
            code = RESULT_OK
        self._reply(session, command.request, code)

    def list_bindings(self, command: Command, session: Session) -> None:
        """The bindings of a router (F60)."""
        assert isinstance(command, ListBindings)
        router = self._routers.get(command.router)
        if router is None:
            self._reply(session, command.request, RESULT_NOT_FOUND)
            return
        body: list[BindingOptions] = []
        for binding in router.bindings:
            body.append(binding.options)
        self._reply(session, command.request, RESULT_OK, body)

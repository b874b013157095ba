"""What an agent calls before each model request: its history in, a request that fits out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextpilot.manager.manager import ContextManager
    from contextpilot.manager.reload_tool import RELOAD_TOOL
    from contextpilot.manager.report import Report, Request, Status
    from contextpilot.manager.session import Session

__all__ = ["RELOAD_TOOL", "ContextManager", "Report", "Request", "Session", "Status"]


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first asked for: a table of windows needs no encoder."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from contextpilot.manager import manager, reload_tool, report, session

    modules = (report, session, manager, reload_tool)
    return next(getattr(m, name) for m in modules if hasattr(m, name))

"""Catalogs of millions of rows to sitemaps, at the speed of gzip compression."""

import sys
from types import ModuleType as _ModuleType

TYPE_CHECKING = False  # the module typing takes 5 ms
if TYPE_CHECKING:
    from ._core import __version__
    from .announce import AnnounceReport, announce
    from .audit.report import AuditReport
    from .audit.run import audit
    from .build.job import Job, build
    from .build.part import Part
    from .clean import clean
    from .errors import (
        AnnounceError,
        ConfigError,
        ConflictError,
        DataError,
        Error,
        InputError,
        PublishError,
        RejectLimitError,
    )
    from .inspect.diff import diff
    from .inspect.read import read
    from .inspect.verify import verify
    from .report import Report
del TYPE_CHECKING

__all__ = [
    "AnnounceError",
    "AnnounceReport",
    "AuditReport",
    "ConfigError",
    "ConflictError",
    "DataError",
    "Error",
    "InputError",
    "Job",
    "Part",
    "PublishError",
    "RejectLimitError",
    "Report",
    "__version__",
    "announce",
    "audit",
    "build",
    "clean",
    "diff",
    "read",
    "verify",
]

# Imported on first use: all of them take 60 ms. Before the command handles signals
# (urlset.__main__), only this file is imported.
_MODULES = {
    "AnnounceError": "errors",
    "ConfigError": "errors",
    "ConflictError": "errors",
    "DataError": "errors",
    "Error": "errors",
    "InputError": "errors",
    "PublishError": "errors",
    "RejectLimitError": "errors",
    "__version__": "_core",
    "AnnounceReport": "announce.report",
    "AuditReport": "audit.report",
    "Job": "build.job",
    "Part": "build.part",
    "Report": "report",
    "announce": "announce",
    "audit": "audit.run",
    "build": "build.job",
    "clean": "clean",
    "diff": "inspect.diff",
    "read": "inspect.read",
    "verify": "inspect.verify",
}


class _Package(_ModuleType):
    """The package. Some functions have the name of a module: ``urlset.build`` is the function."""

    def __getattr__(self, name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        try:
            value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        except ImportError as error:
            if "subinterpreter" not in str(error):
                raise
            from .errors import ConfigError

            raise ConfigError(
                "urlset does not run in a subinterpreter; call it in the main interpreter or in"
                " another process",
                code="config.interpreter",
            ) from error
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # the import of a module binds its name here and would replace the function
        if not (name in _MODULES and isinstance(value, _ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, ...]:
        # engines pickle functions of users with the modules that they use
        from importlib import import_module

        return import_module, (__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package

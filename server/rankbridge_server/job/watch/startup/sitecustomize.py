"""Runs at the start of each Python below `rankbridge watch`: waits until the process imports torch.distributed.

Another sitecustomize, which this one hides, runs as it would have.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

_MISSING = {"torch", "torch.distributed.distributed_c10d"}
"""torch imports the second while it is imported itself: what is hooked is there when both are whole."""
_HERE = os.path.dirname(os.path.abspath(__file__))
_FOLDER = os.path.dirname(_HERE)
_INSTALLED = "rankbridge_server.job.watch"
_BY_PATH = "_rankbridge_watch"


def _others() -> None:
    """Runs the sitecustomize that would have been found without this folder."""
    paths = [it for it in sys.path if os.path.abspath(it or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)
    sys.path[:] = paths


class _Loader(importlib.abc.Loader):
    """Loads a module as it would have been, and then begins to record, if all is there."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As it would have been."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """As it would have been; others see the module's own loader."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _MISSING.discard(module.__name__)
        if not _MISSING:
            try:
                _start()
            except Exception as error:
                rank = os.environ.get("RANK")
                who = f"process {os.getpid()}" if rank is None else f"rank {rank}"
                if os.environ.get("RANKBRIDGE_GUARD"):
                    # A job that was to be guarded must not run without.
                    sys.exit(f"rankbridge watch --guard: {who} cannot be guarded: {error!r}")
                print(f"rankbridge watch: {who} is not recorded: {error!r}", file=sys.stderr)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are waited for, each once."""

    def __init__(self) -> None:
        self._wanted = set(_MISSING)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's spec, with a loader that begins to record."""
        if name not in self._wanted:
            return None
        self._wanted.discard(name)
        if not self._wanted:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


def _start() -> None:
    # What else is installed of rankbridge knows no second copy of this folder. Guard needs what is installed.
    if os.environ.get("RANKBRIDGE_GUARD") or _is_installed():
        module = importlib.import_module(_INSTALLED)
    else:
        module = _by_path()
    module.start()


def _is_installed() -> bool:
    """Whether this folder is what Python would import."""
    try:
        spec = importlib.util.find_spec(_INSTALLED)
    except Exception:
        # None is installed, or another that this Python cannot import.
        return False
    return spec is not None and os.path.realpath(spec.origin or "") == os.path.realpath(
        f"{_FOLDER}/__init__.py"
    )


def _by_path() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        _BY_PATH, os.path.join(_FOLDER, "__init__.py"), submodule_search_locations=[_FOLDER]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[_BY_PATH] = module
    spec.loader.exec_module(module)
    return module


# Which process becomes a rank is not known yet: what torch.multiprocessing starts has no RANK.
if "RANKBRIDGE_WATCH_DIRECTORY" in os.environ:
    sys.meta_path.insert(0, _Finder())
_others()

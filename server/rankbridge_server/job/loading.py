"""Importing the module whose functions a rank offers."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType


class LoadError(Exception):
    """A module cannot be imported; its text has the traceback."""


def load(modules: Sequence[str]) -> list[ModuleType]:
    """Imports modules, and returns them.

    Each is the path of a file that ends with ".py", or a name, which is looked for in the current folder, too.

    Raises LoadError.
    """
    return [_loaded(it) for it in modules]


def _loaded(module: str) -> ModuleType:
    try:
        return _load(module)
    except BaseException as error:
        # SystemExit, too: a script that was not meant to be imported.
        raise LoadError(f"{module} cannot be loaded:\n{_text(error)}") from error


def _load(module: str) -> ModuleType:
    if not module.endswith(".py"):
        _look_in(os.getcwd())
        return importlib.import_module(module)
    path = Path(module).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        # Another rank of this process has imported it.
        return known
    _look_in(str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    made = importlib.util.module_from_spec(spec)
    # As an import does it: what the module defines knows where it is from.
    sys.modules[path.stem] = made
    spec.loader.exec_module(made)
    return made


def _look_in(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _text(error: BaseException) -> str:
    """The traceback without our own frames and those of Python's import system."""
    trace = error.__traceback__
    while trace is not None and (
        trace.tb_frame.f_code.co_filename == __file__
        or trace.tb_frame.f_code.co_filename.startswith("<frozen importlib")
    ):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace)).rstrip()

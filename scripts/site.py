"""What the documentation's site needs beyond docs/: mkdocs calls it.

Links that lead out of docs/ become links to the repository, so that they work on the site and in the repository alike;
the overview is README.md.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(\]\()((?!https?:|mailto:|#)[^)\s#]+)((?:#[^)]*)?\))")


class DeadLink(Exception):
    """A link leads to nothing in the repository."""


def on_config(config: Any) -> Any:
    """Adds the decisions to the navigation."""
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    config.nav.append({"Decisions": [f"decisions/{path.name}" for path in pages]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the overview: README.md."""
    from mkdocs.structure.files import File

    text = (ROOT / "README.md").read_text()
    text = _LINK.sub(lambda it: f"{it[1]}{_from_docs(it[2])}{it[3]}", text)
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Leads links out of docs/ to the repository. Raises DeadLink."""
    folder = Path(config.docs_dir) / Path(page.file.src_uri).parent
    return _LINK.sub(lambda it: f"{it[1]}{_outside(it[2], folder, config)}{it[3]}", markdown)


def _from_docs(target: str) -> str:
    return target.removeprefix("docs/") if target.startswith("docs/") else f"../{target}"


def _outside(target: str, folder: Path, config: Any) -> str:
    path = (folder / target).resolve()
    if path.is_relative_to(config.docs_dir) and path.suffix:
        return target
    if not path.exists():
        raise DeadLink(f"{folder}: {target}")
    return f"{config.repo_url}/blob/main/{path.relative_to(ROOT)}"

"""Hooks of MkDocs (`mkdocs.yml`): what makes the docs of this repository a site.

In the repository pages link to files beside `docs/` (a manifest, the templates' README), so that they can
be followed there. Here such pages become pages of the site, such files come along, and a link to a folder
becomes plain text. And a folder in the navigation stands for its pages, so that a new runbook or record
needs no line.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent
# Pages from beside docs/, and where they stand in the site.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security-policy.md",
    "benchmarks/scale.md": "many-workloads.md",
    "benchmarks/still-of-2.md": "still-life-of-2.md",
    "benchmarks/still.md": "still-life.md",
    "lab/README.md": "lab.md",
    "manifests/helm/splitter/README.md": "reference/chart.md",
    "templates/README.md": "reference/templates.md",
}
# The repository's first page is not the site's.
ELSEWHERE = {**PAGES, "README.md": "index.md"}
_LOADS = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace folders in the navigation by their pages."""
    named = set(_strings(config.nav))
    expanded = _expanded(config.nav, named)
    config.nav = expanded if isinstance(expanded, list) else config.nav
    return config


def _strings(nav: object) -> list[str]:
    match nav:
        case str():
            return [nav]
        case list():
            return [text for item in nav for text in _strings(item)]
        case dict():
            return _strings(list(nav.values()))
        case _:
            return []


def _expanded(item: object, named: set[str]) -> object:
    match item:
        case dict():
            return {title: _expanded(below, named) for title, below in item.items()}
        case list():
            parts = [_expanded(below, named) for below in item]
            return [one for part in parts for one in (part if isinstance(part, list) else [part])]
        case str() if item.endswith("/"):
            pages = sorted((ROOT / "docs" / item).glob("*.md"))
            return [page for path in pages if (page := f"{item}{path.name}".removeprefix("./")) not in named]
        case _:
            return item


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that would load something from elsewhere: the site is read without a network."""
    del config
    if found := _LOADS.search(output):
        raise PluginError(f"{page.file.src_uri} would load {found.group(1)}")
    return output


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from beside docs/."""
    for path, uri in PAGES.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links that leave docs/ into the site."""
    source = Path(str(page.file.abs_src_path))

    def pointed(link: re.Match[str]) -> str:
        text, path, anchor = link.group(1), link.group(2), link.group(3) or ""
        found = (source.parent / path).resolve()
        if not found.is_relative_to(ROOT) or not found.exists():
            return link.group(0)  # the strict build says so
        if found.is_dir():
            return text
        name = found.relative_to(ROOT).as_posix()
        inside = name.removeprefix("docs/")
        uri = ELSEWHERE.get(name) or (inside if inside != name else f"files/{name}")
        if uri.startswith("files/") and files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(found)))
        return f"[{text}]({posixpath.relpath(uri, posixpath.dirname(page.file.src_uri))}{anchor})"

    return _LINK.sub(pointed, markdown)

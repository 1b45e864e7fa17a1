"""Anchors are those of GitHub, which the pages are written for. Links of the pages to files beside them (sources, examples) have no page on the site: their text stays. One that
leads nowhere is a warning, which ends a strict build."""

import logging
import os
import re
import urllib.parse

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_log = logging.getLogger("mkdocs.hooks.site")


def _anchor(heading, separator):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = _anchor
    return config


def on_page_markdown(markdown, page, config, files, **_):
    folder = os.path.dirname(page.file.abs_src_path)

    def link(found):
        image, text, target = found.groups()
        path, _, _ = urllib.parse.unquote(target).partition("#")
        if not path or urllib.parse.urlparse(target).scheme:
            return found[0]
        full = os.path.normpath(os.path.join(folder, path))
        if not os.path.exists(full):
            _log.warning(f"{page.file.src_path}: there is no `{target}`")
            return text
        is_page = files.get_file_from_path(os.path.relpath(full, config["docs_dir"])) is not None
        return found[0] if image or is_page else text

    # Blocks of code are as they are.
    parts = re.split(r"(^```.*?^```)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _LINK.sub(link, part) for part in parts)

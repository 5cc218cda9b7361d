"""The `pgsluice.toml` of an adopted database."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Configuration:
    """What `init --from` decides or was told."""

    target: str
    dev: str
    postgres: tuple[int, int]
    manages: tuple[str, ...] = ("*",)
    requires: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def render(self) -> str:
        """The file's text; keys at their defaults are left out."""
        low, high = self.postgres
        lines = [
            f"dev = {_text(self.dev)}",
            f'postgres = ["{low}", "{high}"]',
            "",
            f"[targets.{self.target}]",
            f"manages = {_list(self.manages)}",
        ]
        if self.requires:
            lines.append(f"requires = {_list(self.requires)}")
        if self.ignore:
            lines.append(f"ignore = {_list(self.ignore)}")
        return "\n".join(lines) + "\n"


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

"""How files of people and of rights are read: a name that is there twice says two things, and neither counts."""

from __future__ import annotations

from collections.abc import Generator

import yaml


class _Loader(yaml.SafeLoader):
    """Refuses a name that is given twice in one place, of which the library keeps the last without a word."""

    def construct_yaml_map(self, node: yaml.MappingNode) -> Generator[dict[object, object], None, None]:
        seen: dict[str, yaml.Node] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                told = (
                    f"{key.value!r} was given before, in line {seen[key.value].start_mark.line + 1}; keep one of them"
                )
                raise yaml.constructor.ConstructorError(None, None, told, key.start_mark)
            seen[key.value] = key
        return super().construct_yaml_map(node)


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_yaml_map)


def loaded(text: str) -> object:
    """What a text in YAML says; YAMLError if it says it twice, or cannot be read."""
    given: object = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe one
    return given

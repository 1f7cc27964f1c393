"""The configuration file: YAML that maps the flags' names to values, faults named by their line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from mcm.configuration.flag import CONFIG, Flag
from mcm.configuration.given import Source, suggestion


def read_file(path: str, flags: Mapping[str, Flag]) -> Source:
    """Read the file, or say why that cannot be done."""
    source = Source()
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        source.problems.append(f"--{CONFIG}: {path}: {error.strerror or error}")
    except UnicodeDecodeError:
        source.problems.append(f"--{CONFIG}: {path}: is no UTF-8 text")
    else:
        read_text(text, path, flags, source)
    return source


def read_text(text: str, path: str, flags: Mapping[str, Flag], source: Source) -> None:
    """Take what ``text`` sets into ``source``; ``path`` is what the file is called."""
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
    except (yaml.YAMLError, RecursionError) as error:
        source.problems.append(f"{path}{_line_of(error)}: is no YAML: {_why(error)}")
        return
    if root is None or root.tag == "tag:yaml.org,2002:null":
        return
    if not isinstance(root, yaml.MappingNode):
        source.problems.append(f"{path}:{root.start_mark.line + 1}: must map flags to values")
        return
    lines: dict[str, int] = {}
    for key_node, value_node in root.value:
        key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "this key"
        line = key_node.start_mark.line + 1
        place = f"{path}:{line}: {key}"
        if (fault := _fault_of_key(key, flags, lines)) is not None:
            source.problems.append(f"{place}: {fault}")
        else:
            try:
                value = loader.construct_object(value_node, deep=True)
            except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
                source.problems.append(f"{place}: {_why(error)}")
            except (LookupError, AttributeError):  # so PyYAML fails at a tag that does not fit
                source.problems.append(f"{place}: is nothing that its tag {value_node.tag} means")
            else:
                source.take_yaml(flags[key], value, place)
        lines.setdefault(key, line)


def _fault_of_key(key: str, flags: Mapping[str, Flag], lines: Mapping[str, int]) -> str | None:
    if key in lines:
        return f"stands in line {lines[key]} already"
    if key == CONFIG:
        return "a file cannot name another one"
    if key in flags:
        return None
    return f"there is no such flag{suggestion(key, flags)}"


def _line_of(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f":{mark.line + 1}" if mark is not None else ""


def _why(error: Exception) -> str:
    why = getattr(error, "problem", None) or str(error)
    return str(why).partition("\n")[0]

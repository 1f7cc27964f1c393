"""All sources together: the options they make, or everything that is wrong with them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from mcm.configuration.flag import CONFIG
from mcm.configuration.given import Given, Source, by_name
from mcm.configuration.machine_program import as_machine_program
from mcm.configuration.precedence import merged
from mcm.configuration.table import WITHOUT_EFFECT, all_flags
from mcm.options import Options

FLAGS: Final = by_name(all_flags())
_LOGIN: Final = re.compile(r"//[^/@\s]+@")


class Misconfigured(Exception):
    """``problems`` is all that is wrong, one line each, which begins with where it stands."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@final
@dataclass(frozen=True, slots=True)
class Configuration:
    """``places`` says of each flag that is set where that was done; ``remarks`` are for the log."""

    options: Options
    places: Mapping[str, str]
    remarks: Sequence[str] = ()


def configured(above: Sequence[Source], below: Sequence[Source] = ()) -> Configuration:
    """Merge sources, those that go before others first; the file that they name stands between
    ``above`` and ``below``. Raises Misconfigured."""
    sources = [*above, *_files(above), *below]
    given = as_machine_program(merged(source.given for source in sources))
    problems = [problem for source in sources for problem in source.problems]
    options = options_of({name: item.value for name, item in given.items()})
    # Whose value cannot be read has none that could be judged.
    unread = {name for source in sources for name in source.unread} - given.keys()
    problems += [
        _placed(problem, given) for problem in options.validate() if _flag_in(problem) not in unread
    ]
    if problems:
        raise Misconfigured(list(dict.fromkeys(problems)))
    places = {name: item.place for name, item in given.items()}
    remarks = [remark for source in sources for remark in source.remarks]
    return Configuration(options, places, [*remarks, *_without_effect(given)])


def options_of(values: Mapping[str, object]) -> Options:
    """Build the options from values by the flags' names; the others keep their defaults."""
    picked: dict[object, dict[str, object]] = {}
    for name, value in values.items():
        picked.setdefault(FLAGS[name].owner, {})[FLAGS[name].field] = value
    groups: dict[str, Any] = {
        field.name: field.default_factory(**picked.get(field.default_factory, {}))
        for field in dataclasses.fields(Options)
        if callable(field.default_factory)
    }
    return Options(**groups)


def shown(options: Options, places: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """Return the value of each flag, and where it was set, for people to look at."""
    groups = {type(group): group for group in _groups(options)}
    return {
        flag.name: {
            "value": _harmless(flag.kind.as_text(getattr(groups[flag.owner], flag.field))),
            "from": places.get(flag.name, "default"),
        }
        for flag in all_flags()
    }


def _harmless(text: str) -> str:
    """The text without who logs in where it is a URL."""
    return _LOGIN.sub("//…@", text)


def _groups(options: Options) -> Iterable[object]:
    return [getattr(options, field.name) for field in dataclasses.fields(options)]


def _files(sources: Sequence[Source]) -> list[Source]:
    path = merged(source.given for source in sources).get(CONFIG)
    if path is None or not path.value:
        return []
    from mcm.configuration.file import read_file  # YAML is loaded only where a file is read

    return [read_file(str(path.value), FLAGS)]


def _flag_in(problem: str) -> str:
    return problem.partition(":")[0].removeprefix("--")


def _placed(problem: str, given: Mapping[str, Given]) -> str:
    """Say of a flag that is set elsewhere than on the command line where that is."""
    item = given.get(_flag_in(problem))
    if item is None or item.place.startswith("--"):
        return problem
    return f"{problem} [{item.place.removesuffix(': ' + _flag_in(problem))}]"


def _without_effect(given: Mapping[str, Given]) -> Iterable[str]:
    names = [f"--{flag.name}" for flag in WITHOUT_EFFECT.flags if flag.name in given]
    return [f"without effect here: {', '.join(names)} (docs/flags.md says why)"] if names else []

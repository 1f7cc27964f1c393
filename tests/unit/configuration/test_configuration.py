"""Sources together: which is obeyed, and that everything wrong with them is said at once."""

from __future__ import annotations

import string
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcm.configuration.arguments import read_arguments
from mcm.configuration.configuration import FLAGS, Configuration, Misconfigured, configured, shown
from mcm.configuration.environment import read_environment, variable_of
from mcm.configuration.file import read_text
from mcm.configuration.given import Given, Source
from mcm.configuration.precedence import merged

UNIT_MISSING: Final = (
    "invalid duration '5': missing unit (ns, us, ms, s, m or h) "
    "(expected a duration such as 90s, 10m or 1h30m)"
)
OTHER_LOCK: Final = (
    "'configmaps' is not supported; only leases are, as Kubernetes removed the locks on endpoints "
    "and config maps"
)


def configuration_of(
    words: list[str], environ: Mapping[str, str] | None = None, below: Source | None = None
) -> Configuration:
    arguments = read_arguments(words, FLAGS, {})
    environment = read_environment(environ or {}, FLAGS.values())
    return configured([arguments.source, environment], [below] if below else [])


def problems_of(words: list[str], environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    with pytest.raises(Misconfigured) as caught:
        configuration_of(words, environ)
    return caught.value.problems


def test_the_command_line_goes_before_the_environment_and_this_before_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mcm.yaml"
    path.write_text("port: 1\nsafety-up: 1\nsafety-down: 3\nmachine-drain-timeout: 5m\n")
    environ = {"MCM_SAFETY_UP": "7", "MCM_PORT": "2", "MCM_CONFIG": str(path)}
    below = Source(given={"safety-down": Given(9, "below"), "max-in-flight": Given(8, "below")})
    configuration = configuration_of(["--port=3"], environ, below)
    options = configuration.options
    assert options.endpoints.port == 3
    assert options.settings.safety_up == 7
    assert options.settings.safety_down == 3
    assert options.settings.drain_timeout == timedelta(minutes=5)
    assert options.api_requests.max_in_flight == 8
    told = shown(options, configuration.places)
    assert told["port"] == {"value": "3", "from": "--port"}
    assert told["safety-up"] == {"value": "7", "from": "MCM_SAFETY_UP"}
    assert told["safety-down"] == {"value": "3", "from": f"{path}:3: safety-down"}
    assert told["address"] == {"value": "0.0.0.0", "from": "default"}


def test_all_that_is_wrong_in_all_places_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mcm.yaml"
    path.write_text(
        "prot: 1\nport: '1'\nsafety-up: -1\nsafety-down: 1\nsafety-down: 2\nconfig: x\n"
    )
    found = problems_of(
        [f"--config={path}", "--adress=::1", "--machine-drain-timeout=5", "--namespace"],
        {"MCM_MAX_IN_FLIGHT": "0", "MCM_LEADER_ELECT": "perhaps"},
    )
    assert [line for line in found if line.startswith("--")] == [
        "--adress: there is no such flag; did you mean --address?",
        f"--machine-drain-timeout: {UNIT_MISSING}",
        "--namespace: needs a value (text)",
        "--max-in-flight: must be at least 1 [MCM_MAX_IN_FLIGHT]",
        f"--safety-up: must not be negative [{path}:3]",
    ]
    assert [line for line in found if not line.startswith("--")] == [
        "MCM_LEADER_ELECT: 'perhaps' is neither true nor false",
        f"{path}:1: prot: there is no such flag; did you mean port?",
        f"{path}:2: port: '1' is no whole number (without quotes)",
        f"{path}:5: safety-down: stands in line 4 already",
        f"{path}:6: config: a file cannot name another one",
    ]


@pytest.mark.parametrize(
    ("words", "problems"),
    [
        (["--leader-elect", "false"], ["'false': belongs to no flag; write --leader-elect=false"]),
        (["--no-leader-elect"],
         ["--no-leader-elect: there is no such flag; write --leader-elect=false"]),
        (["--", "x", "--port=1"], ["'x': belongs to no flag", "'--port=1': belongs to no flag"]),
        (["--nonsense", "x"], ["--nonsense: there is no such flag"]),
        (["-x"], ["-x: there is no such flag"]),
        (["--port"], ["--port: needs a value (number)"]),
        (["--port", "--v=1"], ["--port: needs a value (number)"]),
        (["--contention-profiling"], ["--contention-profiling: needs --profiling"]),
        (["--controller-start-interval=-1s"],
         ["--controller-start-interval: must not be negative"]),
        (["--kube-api-content-type=json"],
         ["--kube-api-content-type: 'json' is no media type (such as application/json)"]),
        (["--leader-elect-resource-lock=configmaps"],
         [f"--leader-elect-resource-lock: {OTHER_LOCK}"]),
        (["--stderrthreshold=LOUD"],
         ["--stderrthreshold: 'LOUD' is no severity (INFO, WARNING, ERROR, FATAL or 0 to 3)"]),
        # A timing that cannot be read is not compared with the others.
        (["--leader-elect-lease-duration=5", "--leader-elect-renew-deadline=1m"],
         [f"--leader-elect-lease-duration: {UNIT_MISSING}"]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_command_line(words: list[str], problems: list[str]) -> None:
    assert list(problems_of(words)) == problems


def test_negative_values_may_stand_alone() -> None:
    words = ["--machine-drain-priority-waves", "-10,5", "--v", "1"]
    assert configuration_of(words).options.settings.drain_priority_waves == (-10, 5)


def test_words_of_the_commands_own_options_are_left_to_it() -> None:
    own = {"--dev-dir": True, "--progress": False, "--no-progress": False}
    words = ["--dev-dir", "x", "--port=1", "--no-progress", "--dev-dir=y", "--progress"]
    arguments = read_arguments(words, FLAGS, own)
    assert arguments.rest == ["--dev-dir", "x", "--no-progress", "--dev-dir=y", "--progress"]
    assert arguments.source.given == {"port": Given(1, "--port")}
    assert arguments.source.problems == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "f:1: is no YAML"),
        ("- port", "f:1: must map flags to values"),
        ("port", "f:1: must map flags to values"),
        ("\nport: yes", "f:2: port: True is no whole number"),
        ("port:", "f:1: port: nothing is no whole number"),
        ("port: 10.5", "f:1: port: 10.5 is no whole number"),
        ("leader-elect: 'true'", "f:1: leader-elect: 'true' is neither true nor false"),
        ("namespace: 7", "f:1: namespace: 7 is no string: put it in quotes"),
        ("machine-drain-timeout: 10", "f:1: machine-drain-timeout: 10 is no duration"),
        ("machine-drain-timeout: soon", "f:1: machine-drain-timeout: invalid duration"),
        ("log-format: xml", "f:1: log-format: 'xml' is none of text, json"),
        ("node-conditions: [A, 1]", "f:1: node-conditions: ['A', 1] is no list of strings"),
        ("node-conditions: {A: 1}", "f:1: node-conditions: {'A': 1} is no list of strings"),
        ("machine-drain-priority-waves: [a]", "'a' is no whole number"),
        ("? [port]\n: 1", "f:1: this key: there is no such flag"),
        (
            "leaderElect: true",
            "f:1: leaderElect: there is no such flag; did you mean leader",
        ),
        ("port: &a [*a]", "f:1: port: found unconstructable recursive node"),
        ("port: !!python/object:os.system {}", "f:1: port: could not determine a constructor"),
        ("port: 2001-99-99", "f:1: port: month must be in 1..12"),
        ("port: !!bool x", "f:1: port: is nothing that its tag tag:yaml.org,2002:bool means"),
        ("port: !!int ''", "f:1: port: is nothing that its tag tag:yaml.org,2002:int means"),
        ("port: !!timestamp x", "f:1: port: is nothing that its tag"),
        ("port: 0x" + "f" * 6000, "f:1: port: this number is too large"),
        ("\x00", "f: is no YAML"),
        ("[" * 3000, "f: is no YAML"),
    ],
)
def test_what_is_wrong_with_a_file(text: str, problem: str) -> None:
    source = Source()
    read_text(text, "f", FLAGS, source)
    assert len(source.problems) == 1
    assert problem in source.problems[0]
    assert "\n" not in source.problems[0]
    assert source.given == {}


@pytest.mark.parametrize("written", ["2e+06", "2.0e+06", "2000000", "2000000.0"])
def test_a_large_number_as_helm_writes_it(written: str) -> None:
    source = Source()
    read_text(f"max-replicas: {written}\nkube-api-qps: {written}", "f", FLAGS, source)
    assert source.problems == []
    assert source.given["max-replicas"].value == 2_000_000
    assert source.given["kube-api-qps"].value == 2_000_000.0


def test_values_of_a_file_have_types() -> None:
    source = Source()
    read_text(
        "---\nmachine-drain-timeout: 0\nkube-api-qps: 5\nnode-conditions: A, B\n"
        "machine-drain-priority-waves: [1, 2]\nleader-elect: off\nlog-format: json\n",
        "f", FLAGS, source,
    )  # fmt: skip
    assert source.problems == []
    assert {name: item.value for name, item in source.given.items()} == {
        "machine-drain-timeout": timedelta(0),
        "kube-api-qps": 5.0,
        "node-conditions": ("A", "B"),
        "machine-drain-priority-waves": (1, 2),
        "leader-elect": False,
        "log-format": "json",
    }


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "null"])
def test_an_empty_file_sets_nothing(text: str) -> None:
    source = Source()
    read_text(text, "f", FLAGS, source)
    assert source == Source()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    missing = tmp_path / "missing"
    assert problems_of([f"--config={missing}"]) == (
        f"--config: {missing}: No such file or directory",
    )
    assert problems_of([f"--config={tmp_path}"]) == (f"--config: {tmp_path}: Is a directory",)
    binary = tmp_path / "binary"
    assert problems_of([f"--config={binary}"]) == (f"--config: {binary}: is no UTF-8 text",)


NUMBERS: Final = ("port", "safety-up", "safety-down", "kube-api-burst", "machine-max-evict-retries")
some = st.dictionaries(st.sampled_from(NUMBERS), st.integers(1, 65535))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(words=some, environ=some, file=some, below=some)
def test_any_mixture_of_sources_gives_what_precedence_says(
    words: dict[str, int],
    environ: dict[str, int],
    file: dict[str, int],
    below: dict[str, int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "mixture.yaml"
    path.write_text(yaml.safe_dump(file))
    configuration = configuration_of(
        [f"--config={path}", *(f"--{name}={value}" for name, value in words.items())],
        {variable_of(name): str(value) for name, value in environ.items()},
        Source(given={name: Given(value, "below") for name, value in below.items()}),
    )
    expected = below | file | environ | words
    told = shown(configuration.options, configuration.places)
    for name in NUMBERS:
        assert told[name]["value"] == FLAGS[name].kind.as_text(
            expected.get(name, FLAGS[name].default)
        )
        assert (told[name]["from"] == "default") == (name not in expected)


@given(
    sources=st.lists(
        st.dictionaries(st.sampled_from("abc"), st.builds(Given, st.integers(), st.just("x")))
    )
)
def test_the_first_source_that_says_anything_is_obeyed(sources: list[dict[str, Given]]) -> None:
    result = merged(sources)
    for name in {name for source in sources for name in source}:
        assert result[name] is next(source[name] for source in sources if name in source)


BAD: Final = {
    "--port=0": "--port: 0 is not a port",
    "--address=x": "--address: 'x'",
    "--namespace=A": "--namespace: 'A'",
    "--safety-up=-1": "--safety-up: must not",
    "--machine-drain-timeout=1": "--machine-drain-timeout: invalid",
    "--log-format=xml": "--log-format: 'xml'",
    "--unheard-of=1": "--unheard-of: there is no such flag",
    "--contention-profiling": "--contention-profiling: needs",
    "stray": "'stray': belongs",
    "--max-in-flight=many": "--max-in-flight: 'many'",
}


@given(words=st.lists(st.sampled_from(sorted(BAD)), min_size=1, unique=True))
def test_any_set_of_faults_is_reported_whole(words: list[str]) -> None:
    found = problems_of(words)
    assert len(found) == len(words)
    for word in words:
        assert any(problem.startswith(BAD[word]) for problem in found)


@given(words=st.lists(st.text(string.printable + "äé", max_size=12)))
def test_no_command_line_breaks_the_reading(words: list[str]) -> None:
    arguments = read_arguments(words, FLAGS, {})
    assert len(arguments.source.problems) <= len(words)
    assert not arguments.rest


@given(text=st.text(string.printable, max_size=60))
def test_no_file_breaks_the_reading(text: str) -> None:
    read_text(text, "f", FLAGS, Source())

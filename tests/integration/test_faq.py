"""``docs/faq.md`` answers each question, and its commands do what it says they do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from mcm.api.machine import MachinePhase
from tests.envtest.operations import servers
from tests.integration.faq import page
from tests.integration.faq.reader import Reader
from tests.integration.faq.scenarios import SCENARIOS

pytestmark = pytest.mark.timeout(300)

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "Basics": (
        "What is mcm?",
        "Why was my machine deleted?",
        "Which controllers are there?",
        "What does the safety controller do?",
    ),
    "How to …": (
        "How do I install mcm?",
        "How do I control the rollout of machines?",
        "How do I choose which machine goes when I scale down?",
        "How do I force the deletion of a machine?",
        "How do I pause a rolling update?",
        "How do I replace a machine that I have no access to?",
        "How do I keep VMs of my own from being collected?",
        "How do I trigger a rolling update?",
    ),
    "Internals": (
        "What is the design of mcm?",
        "Which configuration options are there?",
        "Which timeouts has a machine in its life?",
        "How is a machine drained?",
        "How are pods with volumes drained?",
        "How do the eviction retries and the drain timeout work together?",
        "Which phases has a machine?",
        "What happens when I scale in the middle of a rollout?",
        "In which order are machines deleted?",
        "Why are some unhealthy machines drained quickly?",
    ),
    "Troubleshooting": (
        "Why is my machine stuck in deletion?",
        "Why does my machine not join the cluster?",
        "Why is my rolling update stuck?",
    ),
    "Developers": (
        "How do I test my changes?",
        "How do I change the API?",
        "How do I renew dependencies?",
    ),
    "With Gardener": (
        "How do I set the knobs of mcm for a shoot?",
        "How is a worker pool spread over zones?",
    ),
}
"""What the specification's own page answers, in its order."""


def test_each_question_has_its_answer() -> None:
    assert page.groups() == QUESTIONS


def test_each_command_is_run_or_names_the_test_that_holds_it() -> None:
    for questions in QUESTIONS.values():
        for question in questions:
            for block in page.blocks(question):
                assert block.test or question in SCENARIOS, question
    for block in page.all_blocks():
        if block.test:
            path, _, name = block.test.partition("::")
            assert f"def {name}(" in (page.ROOT / path).read_text(), block.test
        for line in block.text.replace("\\\n", "").splitlines():
            assert shlex.split(line)[0] in {"kubectl", "mcm", "helm"}
    assert len(list(page.all_blocks())) == page.PAGE.read_text().count("```sh\n")


def test_links_lead_somewhere() -> None:
    for link in page.links():
        name, _, anchor = link.partition("#")
        path = (page.PAGE.parent / name).resolve() if name else page.PAGE
        assert path.is_file(), link
        assert not anchor or anchor in page.anchors(path), link


def test_all_phases_are_explained() -> None:
    answer = page.PAGE.read_text().split("### Which phases has a machine?")[1].split("###")[0]
    table = " ".join(re.findall(r"^\| (.*?) \|", answer, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", table)) == {phase.value for phase in MachinePhase if phase}


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, kubectl_binary: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[None]]]:
    """The commands that somebody will ask for, begun on one sandbox with one manager."""
    folder = tmp_path_factory.mktemp("faq")
    with (
        servers.sandbox(folder, kubectl_binary) as server,
        ThreadPoolExecutor(max_workers=4) as pool,
    ):
        server.kubectl("create", "secret", "generic", "cloud", "--from-literal=userData=none")
        wanted = [item.name for item in request.session.items]
        futures = {
            question: pool.submit(Reader(server, folder, question, f"faq-{number}").follow, *each)
            for number, (question, each) in enumerate(SCENARIOS.items())
            if any(question in name for name in wanted)
        }
        yield futures
        pool.shutdown(cancel_futures=True)
        assert "Traceback" not in server.manager.log.read_text()


@pytest.mark.kubectl
@pytest.mark.parametrize("question", SCENARIOS)
def test_its_commands_do_what_it_says(question: str, played: Mapping[str, Future[None]]) -> None:
    played[question].result()

from __future__ import annotations

from datetime import datetime

import pytest

from mcm.api.meta import ObjectMeta, OwnerReference
from mcm.client.errors import AlreadyExists
from mcm.controllers.owning import NameTaken, controller_reference, create_or_find
from mcm.controllers.owning.collisions import NameHolder, holder_of_name
from tests.unit.machineset.cluster import EPOCH, Cluster, play
from tests.unit.owning.widgets import WIDGET_SETS, WIDGETS, Widget

OWNER = ObjectMeta(name="set", namespace="ns", uid="set-uid")
OTHER = ObjectMeta(name="set", namespace="ns", uid="uid-of-another-set-of-that-name")
OURS = controller_reference(WIDGET_SETS, OWNER)
THEIRS = controller_reference(WIDGET_SETS, OTHER)
GUEST = OwnerReference(api_version="v1", kind="Guest", name="g", uid="guest")


def present(
    *references: OwnerReference, color: str = "red", deleted: datetime | None = None
) -> Widget:
    meta = ObjectMeta(
        name="w",
        namespace="ns",
        uid="w-uid",
        resource_version="1",
        owner_references=references,
        deletion_timestamp=deleted,
    )
    return Widget(metadata=meta, color=color)


@pytest.mark.parametrize(
    ("found", "holder"),
    [
        (present(OURS), NameHolder.OURS),
        (present(GUEST, OURS), NameHolder.OURS),
        (present(OURS, deleted=EPOCH), NameHolder.LEAVING),
        (present(), NameHolder.ORPHAN),
        (present(GUEST), NameHolder.ORPHAN),
        (present(THEIRS), NameHolder.FOREIGN),
        (present(THEIRS, deleted=EPOCH), NameHolder.FOREIGN),
    ],
)
def test_who_holds_a_name(found: Widget, holder: NameHolder) -> None:
    assert holder_of_name(found.metadata, OWNER.uid) is holder


async def ask(cluster: Cluster) -> tuple[Widget, bool]:
    return await create_or_find(
        cluster.factory.writer,
        cluster.factory.store(WIDGETS),
        WIDGETS,
        "w",
        {"metadata": {"name": "w"}, "color": "red"},
        owner=OWNER,
        serves=lambda widget: widget.color == "red",
    )


def on_the_server(cluster: Cluster, widget: Widget) -> None:
    cluster.api.put(WIDGETS, {"metadata": {"name": "w", "namespace": "ns", "uid": "w-uid"}})
    cluster.behind(widget, WIDGETS)


def test_a_name_that_is_free_is_used() -> None:
    made, is_new = play(lambda: ask(Cluster()))
    assert (made.metadata.name, made.color, is_new) == ("w", "red", True)


def test_a_child_of_ours_that_serves_is_as_good_as_a_new_one() -> None:
    cluster = Cluster()
    on_the_server(cluster, present(OURS))
    assert play(lambda: ask(cluster)) == (present(OURS), False)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (present(OURS, color="blue"), "made differently"),
        (present(OURS, deleted=EPOCH), "is being deleted"),
        (present(), "without a controller"),
        (present(THEIRS), "another owner's"),
    ],
)
def test_a_name_that_is_not_ours_to_use_is_taken_and_it_says_by_whom(
    found: Widget, said: str
) -> None:
    cluster = Cluster()
    on_the_server(cluster, found)
    with pytest.raises(NameTaken, match=said):
        play(lambda: ask(cluster))


def test_what_the_store_does_not_show_yet_is_no_reason_to_choose_another_name() -> None:
    cluster = Cluster()
    cluster.api.put(WIDGETS, {"metadata": {"name": "w", "namespace": "ns", "uid": "w-uid"}})
    with pytest.raises(AlreadyExists) as caught:
        play(lambda: ask(cluster))
    assert not isinstance(caught.value, NameTaken)

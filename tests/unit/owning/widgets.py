"""A family of sets that the project does not have, made from the engine alone.

A WidgetSet keeps so many Widgets. All that is its own is what one could not know: the kinds, the
body of a widget, and how many are wanted.
"""

from __future__ import annotations

from typing import Final, final

from mcm.api.codec import to_json_object
from mcm.api.meta import ApiStruct, JSONObject, LabelSelector, ObjectMeta, Resource
from mcm.controllers.context import ControllerContext
from mcm.controllers.fanout import raise_together
from mcm.controllers.owning import (
    ChildControl,
    Claimer,
    Ending,
    Ownership,
    OwnerWriter,
    controller_reference,
    ending_of,
    wake_owners,
)
from mcm.controllers.runtime import DONE, Controller, Outcome

FINALIZER: Final = "toys.example.com/widget-set"
CONFIRM_AFTER: Final = 2.0


class Widget(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    color: str = ""


class WidgetSetSpec(ApiStruct, frozen=True, kw_only=True):
    replicas: int = 0
    selector: LabelSelector | None = None
    color: str = ""


class WidgetSetStatus(ApiStruct, frozen=True, kw_only=True):
    observed_generation: int = 0
    replicas: int = 0


class WidgetSet(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: WidgetSetSpec = WidgetSetSpec()
    status: WidgetSetStatus = WidgetSetStatus()


WIDGETS = Resource("toys.example.com", "v1", "widgets", "Widget", Widget)
WIDGET_SETS = Resource("toys.example.com", "v1", "widgetsets", "WidgetSet", WidgetSet)
OWNERSHIP: Final = Ownership(
    owner=WIDGET_SETS, child=WIDGETS, selector=lambda s: s.spec.selector, noun="widget"
)


def new_widget(widget_set: WidgetSet, name: str) -> JSONObject:
    selector = widget_set.spec.selector or LabelSelector()
    reference = controller_reference(WIDGET_SETS, widget_set.metadata)
    return {
        "metadata": {
            "name": name,
            "labels": dict(selector.match_labels),
            "ownerReferences": [to_json_object(reference)],
            "finalizers": ["toys.example.com/widget"],
        },
        "color": widget_set.spec.color,
    }


@final
class WidgetSetReconciler:
    def __init__(self, ctx: ControllerContext) -> None:
        informers = ctx.control_informers
        writer, widgets = informers.writer, informers.store(WIDGETS)
        self._sets = informers.store(WIDGET_SETS)
        self._owner = OwnerWriter(WIDGET_SETS, writer)
        self._claimer = Claimer(OWNERSHIP, self._sets, widgets, reader=ctx.control, writer=writer)
        self._control = ChildControl(
            OWNERSHIP, widgets, writer, ctx.events, body=new_widget, randomness=ctx.random
        )

    async def reconcile(self, key: str) -> Outcome:
        widget_set = self._sets.get(key)
        if widget_set is None:
            self._control.forget(key)
            return DONE
        if widget_set.metadata.deletion_timestamp is not None:
            return await self._end(widget_set)
        widget_set = await self._owner.keep_finalizer(widget_set, FINALIZER)
        errors = [*await self._claimer.claim(widget_set)]
        owned = self._claimer.owned(widget_set)
        living = [w for w in owned if w.metadata.deletion_timestamp is None]
        missing = widget_set.spec.replicas - len(living)
        if missing > 0:
            errors += await self._control.create(widget_set, missing)
        else:
            errors += await self._control.delete(widget_set, living[widget_set.spec.replicas :])
        status = WidgetSetStatus(
            observed_generation=widget_set.metadata.generation,
            replicas=len(self._claimer.owned(widget_set)),
        )
        await self._owner.write_status(widget_set, status)
        raise_together(key, errors)
        if missing > 0 and self._control.unconfirmed(widget_set):
            return Outcome(CONFIRM_AFTER, "a widget has not been seen yet")
        return DONE

    async def _end(self, widget_set: WidgetSet) -> Outcome:
        self._control.forget(widget_set.metadata.key)
        owned = self._claimer.owned(widget_set)
        match ending_of(widget_set.metadata, FINALIZER, owned):
            case Ending.LET_GO:
                await self._owner.let_go(widget_set, FINALIZER)
            case Ending.DELETE_CHILDREN:
                raise_together("end", await self._control.delete(widget_set, owned))
            case Ending.OVER:
                pass
        return DONE


def build(ctx: ControllerContext) -> Controller:
    queue = ctx.queue("widgetset")
    informers = ctx.control_informers
    wake_owners(queue, OWNERSHIP, informers.informer(WIDGET_SETS), informers.informer(WIDGETS))
    return ctx.controller("widgetset", queue, WidgetSetReconciler(ctx).reconcile, workers=4)

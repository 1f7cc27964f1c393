"""Rules on errors: which code a refusal has decides what is done about it."""

from __future__ import annotations

from mcm.conformance.lab import Lab
from mcm.conformance.rule import NotApplicable, Violation, rule
from mcm.driver import Code, DriverError


@rule
async def refusals_have_the_code_that_fits(lab: Lab) -> None:
    """CreateMachine says by its code what is wrong: INVALID_ARGUMENT for a providerSpec,
    UNAUTHENTICATED for credentials, RESOURCE_EXHAUSTED for quota. It decides who is to mend it, and
    when it is tried again. Nothing is left of a call that was refused."""
    if not lab.subject.refusals:
        raise NotApplicable("the subject names no refusals: give a wrong class, a wrong secret")
    for refusal in lab.subject.refusals:
        machine = lab.machine()
        expected = " or ".join(sorted(code.text for code in refusal.codes))
        try:
            await lab.create(machine, in_class=refusal.machine_class, secret=refusal.secret)
        except DriverError as error:
            if error.code not in refusal.codes:
                raise Violation(
                    f"{refusal.when}: it answered {error.code.text}, not {expected}"
                ) from error
        else:
            raise Violation(f"{refusal.when}: it succeeded; {expected} was expected")
        if machine.metadata.name in (await lab.listed()).values():
            raise Violation(f"{refusal.when}: it was refused, and yet there is a VM")


@rule
async def an_uninitialized_vm_is_named(lab: Lab) -> None:
    """An error UNINITIALIZED of GetMachineStatus carries provider_id and node_name: the VM exists,
    and has to be recorded."""
    machine = lab.machine()
    made = await lab.create(machine)
    try:
        await lab.status(machine)
    except DriverError as error:
        if error.code is not Code.UNINITIALIZED:
            return
        if (error.provider_id, error.node_name) != (made.provider_id, made.node_name):
            raise Violation(
                f"it names {error.provider_id!r} and {error.node_name!r}; created were "
                f"{made.provider_id!r} and {made.node_name!r}"
            ) from error

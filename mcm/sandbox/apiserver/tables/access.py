"""Columns of roles, bindings and configurations of webhooks."""

from __future__ import annotations

from mcm.sandbox.apiserver.tables.columns import AGE, NAME, Column, View, wide


def _created_at(view: View) -> str:
    return view.text("metadata", "creationTimestamp")


def _role(view: View) -> str:
    return f"{view.text('roleRef', 'kind')}/{view.text('roleRef', 'name')}"


ROLE_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Created At", _created_at, type="date", description="When the role was created."),
)


def _subject_column(name: str, kind: str) -> Column:
    def cell(view: View) -> str:
        found = [s for s in view.objects("subjects") if s.get("kind") == kind]
        if kind != "ServiceAccount":
            return ", ".join(str(s.get("name")) for s in found)
        return ", ".join(f"{s.get('namespace', '')}/{s.get('name')}" for s in found)

    return wide(name, cell)


BINDING_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Role", _role),
    AGE,
    _subject_column("Users", "User"),
    _subject_column("Groups", "Group"),
    _subject_column("ServiceAccounts", "ServiceAccount"),
)

WEBHOOK_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Webhooks", lambda view: view.size("webhooks"), type="integer"),
    AGE,
)

from __future__ import annotations

import base64
import json
import logging
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcm.client import kubeconfig
from mcm.client.connection import (
    BasicAuth,
    ConnectionSpec,
    ExecPlugin,
    Impersonation,
    NoCredentials,
    StaticToken,
    TLSSpec,
    TokenFile,
)
from mcm.client.errors import ConfigurationError

SENTINEL = "s3ntinel-t0ken"
V1 = "client.authentication.k8s.io/v1"

Write = Callable[..., Path]


def document(
    user: Mapping[str, object] | None = None,
    cluster: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
    **extra: object,
) -> dict[str, object]:
    """A kubeconfig with one cluster, user and context, all named "a"."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": cluster or {"server": "https://a:6443"}}],
        "users": [{"name": "a", "user": dict(user or {})}],
        "contexts": [{"name": "a", "context": context or {"cluster": "a", "user": "a"}}],
        "current-context": "a",
        **extra,
    }


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(content: object, name: str = "config") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return make


def load(path: Path, **options: Any) -> ConnectionSpec:
    return kubeconfig.load(str(path), **{"environ": {}, **options})


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# What is understood -------------------------------------------------------------------------------


def test_a_whole_entry_becomes_a_connection(write: Write, authority: Any) -> None:
    cert, key = authority.issue()
    path = write(
        document(
            {
                "client-certificate-data": b64(cert),
                "client-key-data": b64(key),
                "token": "abc\n",
                "as": "jane",
                "as-uid": "42",
                "as-groups": ["devs"],
                "as-user-extra": {"scope": ["x", "y"]},
            },
            {
                "server": "https://a:6443/",
                "certificate-authority-data": b64(authority.pem),
                "tls-server-name": "api.internal",
                "proxy-url": "http://proxy:3128",
                "disable-compression": True,
            },
            {"cluster": "a", "user": "a", "namespace": "garden"},
        )
    )
    assert load(path) == ConnectionSpec(
        server="https://a:6443",
        tls=TLSSpec(ca_data=authority.pem, cert_data=cert, key_data=key),
        credentials=StaticToken("abc"),
        impersonation=Impersonation("jane", "42", ("devs",), (("scope", ("x", "y")),)),
        proxy="http://proxy:3128",
        tls_server_name="api.internal",
        namespace="garden",
        compression=False,
    )


def test_paths_are_relative_to_the_file(write: Write, authority: Any, tmp_path: Path) -> None:
    cert, key = authority.issue()
    for name, data in {"ca": authority.pem, "cert": cert, "key": key}.items():
        (tmp_path / name).write_bytes(data)
    user = {"client-certificate": "../cert", "client-key": "../key", "tokenFile": "token"}
    cluster = {"server": "https://a", "certificate-authority": "../ca"}
    spec = load(write(document(user, cluster), "folder/config"))
    assert spec.tls == TLSSpec(
        ca_file=str(tmp_path / "ca"),
        cert_file=str(tmp_path / "cert"),
        key_file=str(tmp_path / "key"),
    )
    assert spec.credentials == TokenFile(str(tmp_path / "folder/token"))


def test_inline_data_wins_over_files_and_a_token_file_over_a_token(
    write: Write, authority: Any, tmp_path: Path
) -> None:
    cluster = {
        "server": "https://a",
        "certificate-authority": "nope",
        "certificate-authority-data": b64(authority.pem),
    }
    spec = load(write(document({"tokenFile": "t", "token": "old"}, cluster)))
    assert spec.tls.ca_data == authority.pem
    assert spec.credentials == TokenFile(str(tmp_path / "t"))


@pytest.mark.parametrize(
    ("user", "credentials"),
    [
        ({}, NoCredentials()),
        ({"token": None, "exec": None}, NoCredentials()),
        ({"username": "u", "password": "p"}, BasicAuth("u", "p")),
        (
            {"exec": {"apiVersion": V1, "command": "aws", "args": ["eks"], "env": None}},
            ExecPlugin("aws", V1, ("eks",)),
        ),
    ],
)
def test_each_way_to_log_in_is_understood(
    user: dict[str, object], credentials: object, write: Write
) -> None:
    assert load(write(document(user))).credentials == credentials


def test_a_context_without_user_is_anonymous(write: Write) -> None:
    assert load(write(document(context={"cluster": "a"}))).credentials == NoCredentials()


def test_a_plugin_gets_what_its_entry_says(write: Write, authority: Any, tmp_path: Path) -> None:
    (tmp_path / "ca").write_bytes(authority.pem)
    entry = {
        "apiVersion": V1,
        "command": "./bin/login",
        "env": [{"name": "A", "value": "b"}],
        "installHint": "install it",
        "interactiveMode": "IfAvailable",
        "provideClusterInfo": True,
    }
    cluster = {
        "server": "https://a",
        "certificate-authority": "ca",
        "extensions": [
            {"name": "other", "extension": 1},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}},
        ],
    }
    assert load(write(document({"exec": entry}, cluster))).credentials == ExecPlugin(
        str(tmp_path / "bin/login"),
        V1,
        env=(("A", "b"),),
        install_hint="install it",
        cluster={
            "server": "https://a",
            "certificate-authority-data": b64(authority.pem),
            "config": {"audience": "x"},
        },
    )


@pytest.mark.parametrize(
    ("cluster", "server"),
    [
        ({"server": "a:6443"}, "http://a:6443"),
        ({"server": "a:6443", "insecure-skip-tls-verify": True}, "https://a:6443"),
        ({"server": "http://a:8080"}, "http://a:8080"),
    ],
)
def test_a_server_without_scheme_speaks_tls_if_anything_about_tls_is_said(
    cluster: dict[str, object], server: str, write: Write
) -> None:
    assert load(write(document(cluster=cluster))).server == server


def test_the_environments_proxy_counts_unless_the_file_names_one(write: Write) -> None:
    environ = {"HTTPS_PROXY": "http://env:1"}
    assert load(write(document()), environ=environ).proxy == "http://env:1"
    cluster = {"server": "https://a", "proxy-url": "http://file:1"}
    assert load(write(document(cluster=cluster)), environ=environ).proxy == "http://file:1"


def jwt(**claims: object) -> str:
    def part(data: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part(claims)}.c2ln"


@pytest.mark.parametrize("subject", ["a", "ab", "abc", "???>>>~~~", "ÿÿÿ"])
def test_an_oidc_token_is_used_until_it_expires(subject: str, write: Write) -> None:
    token = jwt(sub=subject, exp=1_700_000_000)
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    credentials = load(write(document(user))).credentials
    assert isinstance(credentials, StaticToken)
    assert (credentials.token, credentials.expires_at) == (token, 1_700_000_000)
    assert "use an exec plugin" in credentials.remedy


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "text"),
    [
        ({"token": "a", "username": "b"}, "token and username exclude each other"),
        ({"token": "a", "exec": {"command": "x"}}, "token and exec exclude each other"),
        ({"as-groups": ["devs"]}, "need as"),
        ({"exec": {"apiVersion": V1}}, "exec has no command"),
        (
            {"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}},
            "v1alpha1' is not known; expected client.authentication.k8s.io/v1 or",
        ),
        (
            {"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Always"}},
            "wants a terminal",
        ),
        ({"auth-provider": {"name": "gcp"}}, "'gcp' was removed .*gke-gcloud-auth-plugin"),
        ({"auth-provider": {"name": "oidc"}}, "no id-token; log in again, or use an exec plugin"),
        (
            {"auth-provider": {"name": "oidc", "config": {"id-token": SENTINEL}}},
            "id-token is no JWT",
        ),
        ({"token": f"{SENTINEL}\nX: y"}, "characters that no token has"),
        ({"token": [SENTINEL]}, r"Expected `str`, got `array` - at `\$.token`"),
        ({"client-key-data": SENTINEL}, "client-key-data is not base64"),
        ({"client-key-data": b64(b"x")}, "one is missing"),
        (
            {"client-key-data": b64(b"x"), "client-certificate-data": b64(b"y")},
            "client certificate and key do not load",
        ),
        ({"client-certificate": "nope", "client-key": "nope"}, "cannot read client certificate"),
    ],
)
def test_a_user_that_cannot_work_is_refused_with_the_reason(
    user: dict[str, object], text: str, write: Write
) -> None:
    path = write(document(user))
    with pytest.raises(ConfigurationError, match=text) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"kubeconfig {path}, user 'a': ")
    assert SENTINEL not in message and "\n" not in message


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        ({"server": ""}, "no server; expected a URL"),
        ({"server": "ftp://a"}, "server must be a URL"),
        ({"server": "https://a", "proxy-url": "socks5://b"}, "proxy must be a URL"),
        ({"server": "https://a", "certificate-authority": "nope"}, "cannot read certificate auth"),
        ({"server": "https://a", "certificate-authority-data": "%"}, "is not base64"),
        ({"server": "https://a", "certificate-authority-data": "d29yZHM="}, "no PEM certificate"),
        ({"server": 7}, r"Expected `str`, got `int` - at `\$.server`"),
    ],
)
def test_a_cluster_that_cannot_work_is_refused_with_the_reason(
    cluster: dict[str, object], text: str, write: Write
) -> None:
    path = write(document(cluster=cluster))
    with pytest.raises(ConfigurationError, match=text) as caught:
        load(path)
    assert str(caught.value).startswith(f"kubeconfig {path}, cluster 'a': ")


def test_an_authority_beside_skipped_verification_is_refused(write: Write, authority: Any) -> None:
    cluster = {
        "server": "https://a",
        "certificate-authority-data": b64(authority.pem),
        "insecure-skip-tls-verify": True,
    }
    with pytest.raises(ConfigurationError, match=r"cluster 'a': .* exclude each other"):
        load(write(document(cluster=cluster)))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "config is empty"),
        ("# nothing\n\n", "config is empty"),
        ("---\n", "is no kubeconfig"),
        ("a: [b\n", r"is no kubeconfig \(not YAML at line 2\)"),
        (f"users: {SENTINEL}: {SENTINEL}", r"is no kubeconfig \(not YAML"),
        ("just words", "is no kubeconfig"),
        ("- a\n- b\n", "is no kubeconfig"),
        ("7", "is no kubeconfig"),
        ({"kind": "Pod", "metadata": {"name": "p"}}, "another kind of document"),
        ({"hello": "world"}, "no clusters, contexts or users in it"),
        ({"clusters": 7}, "of a wrong form"),
        ({"clusters": [{"cluster": {}}], "users": ["x"]}, "of a wrong form|does not exist|no curr"),
        ("clusters: !!python/object:os.system {}", "not YAML"),
    ],
)
def test_what_is_no_kubeconfig_is_named_with_what_was_expected(
    content: object, text: str, write: Write
) -> None:
    path = write(content)
    with pytest.raises(ConfigurationError, match=text) as caught:
        load(path)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    assert "expected" in message or "choose" in message
    assert SENTINEL not in message


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\xff\xfe\x00binary")
    with pytest.raises(ConfigurationError, match="not text"):
        load(path)


def test_a_folder_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot read kubeconfig .*: Is a directory"):
        load(tmp_path)
    with pytest.raises(ConfigurationError, match="nope: no such file"):
        load(tmp_path / "nope")


@pytest.mark.parametrize(
    ("changes", "context", "text"),
    [
        ({"current-context": ""}, None, r"no current-context; choose one with --context \(a\)"),
        ({}, "b", r"context 'b' does not exist \(there are: a\)"),
        ({"contexts": None}, None, r"context 'a' does not exist \(there are: none\)"),
        ({"clusters": []}, None, r"cluster 'a' of context 'a' does not exist"),
        ({"users": []}, None, r"user 'a' of context 'a' does not exist \(there are: none\)"),
        ({"contexts": [{"name": "a"}]}, None, "context 'a' names no cluster"),
    ],
)
def test_what_a_context_names_must_exist(
    changes: dict[str, object], context: str | None, text: str, write: Write
) -> None:
    path = write(document(**changes))  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=text) as caught:
        load(path, context=context)
    assert str(path) in str(caught.value)


def test_secrets_are_in_no_repr_and_no_log(
    write: Write, authority: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = authority.issue()
    users: list[dict[str, object]] = [
        {"token": SENTINEL},
        {"username": "u", "password": SENTINEL},
        {"exec": {"apiVersion": V1, "command": "x", "args": [SENTINEL]}},
        {"client-certificate-data": b64(cert), "client-key-data": b64(key)},
    ]
    cluster = {"server": "https://a", "proxy-url": f"http://u:{SENTINEL}@proxy:1"}
    with caplog.at_level(logging.DEBUG):
        for user in users:
            shown = repr(load(write(document(user, cluster))))
            assert SENTINEL not in shown
            assert "PRIVATE KEY" not in shown
    assert SENTINEL not in caplog.text


# Several files ------------------------------------------------------------------------------------


def entries(name: str, server: str) -> dict[str, object]:
    return {
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": f"token-of-{server[8:]}"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }


def test_the_first_file_that_names_a_thing_owns_it(write: Write) -> None:
    first = write(entries("a", "https://first"), "1")
    second = write({**entries("a", "https://second"), "current-context": "a"}, "2")
    third = write({**entries("b", "https://third"), "current-context": "b"}, "3")
    environ = {"KUBECONFIG": f"{first}::{first.parent}/nope:{second}:{third}:{first}"}
    spec = kubeconfig.load(environ=environ)
    assert (spec.server, spec.credentials) == ("https://first", StaticToken("token-of-first"))
    assert kubeconfig.load(environ=environ, context="b").server == "https://third"


def test_an_empty_file_among_others_is_passed_over(write: Write) -> None:
    empty, full = write("", "1"), write(document(), "2")
    environ = {"KUBECONFIG": f"{empty}:{full}"}
    assert kubeconfig.load(environ=environ).server == "https://a:6443"


def test_a_broken_file_among_others_is_an_error_that_names_it(write: Write) -> None:
    good, bad = write(document(), "1"), write("a: [", "2")
    with pytest.raises(ConfigurationError, match=f"{bad} is no kubeconfig"):
        kubeconfig.load(environ={"KUBECONFIG": f"{good}:{bad}"})


def test_without_variable_the_home_folders_file_is_taken(write: Write, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert kubeconfig.candidates(environ=environ) == []
    path = write(document(), ".kube/config")
    assert kubeconfig.candidates(environ=environ) == [path]
    assert kubeconfig.load(environ=environ).server == "https://a:6443"


def test_having_none_at_all_says_where_one_could_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"set KUBECONFIG, or make ~/\.kube"):
        kubeconfig.load(environ={"HOME": str(tmp_path)})
    with pytest.raises(ConfigurationError, match=r"no file of KUBECONFIG=/nope exists"):
        kubeconfig.load(environ={"KUBECONFIG": "/nope"})


def random_file(chance: random.Random) -> dict[str, object]:
    """A file with some of three contexts, each with its cluster and user, and maybe a current."""
    names = chance.sample("abc", chance.randint(0, 3))
    body: dict[str, list[object]] = {"clusters": [], "users": [], "contexts": []}
    for name in names:
        number = chance.randint(0, 99)
        for key, part in entries(name, f"https://{name}{number}").items():
            assert isinstance(part, list)
            if chance.random() < 0.8:
                body[key] += part
    current = chance.choice(["", *"abc"])
    return {**body, **({"current-context": current} if chance.random() < 0.7 else {})}


@pytest.mark.kubectl
@pytest.mark.parametrize("seed", range(12))
def test_files_merge_as_they_do_in_kubectl(seed: int, write: Write, tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl in PATH")
    chance = random.Random(seed)
    paths = [write(random_file(chance), str(n)) for n in range(chance.randint(1, 4))]
    environ = {"KUBECONFIG": ":".join(map(str, paths)), "HOME": str(tmp_path)}
    shown = subprocess.run(
        [kubectl, "config", "view", "--raw", "-o", "json"],
        env={**environ, "PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )
    merged = json.loads(shown.stdout)
    clusters = {c["name"]: c["cluster"]["server"] for c in merged["clusters"] or ()}
    users = {u["name"]: u["user"]["token"] for u in merged["users"] or ()}
    contexts = {c["name"] for c in merged["contexts"] or ()}
    for name in (None, *"abc"):
        wanted = name or merged["current-context"]
        if wanted in contexts and wanted in clusters and wanted in users:
            spec = kubeconfig.load(context=name, environ=environ)
            assert spec.server == clusters[wanted]
            assert spec.credentials == StaticToken(users[wanted])
        else:
            with pytest.raises(ConfigurationError):
                kubeconfig.load(context=name, environ=environ)


# What it costs ------------------------------------------------------------------------------------


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return set(done.stdout.split())


def test_the_client_alone_loads_neither_the_big_package_nor_a_transport() -> None:
    loaded = modules_after("import mcm.client.client, mcm.client.discovery")
    assert not {m for m in loaded if m.startswith(("kubernetes_asyncio", "aiohttp", "yaml"))}


def test_a_pod_does_not_pay_for_kubeconfigs() -> None:
    loaded = modules_after("import mcm.client.http, mcm.client.incluster, mcm.client.kubeconfig")
    assert not {m for m in loaded if m.startswith(("kubernetes_asyncio", "yaml"))}


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full"])
def test_a_file_without_end_is_no_kubeconfig(path: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{path} is no kubeconfig .too large"):
        kubeconfig.load(path, environ={})

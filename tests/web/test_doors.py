"""Who comes in: log-in, roles, sessions, hosts, proxies, certificates."""

from __future__ import annotations

import re
import runpy
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from resight.gallery import Gallery, users
from resight.gallery.log import latest
from resight.web.app import make_app, routes_and_roles
from resight.web.security import Guard, RefusedError, SlowDown
from resight.web.serving import Settings

ROOT = Path(__file__).resolve().parents[2]
JSON = {"Accept": "application/json"}
HTML = {"Accept": "text/html"}
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash quickly: what is tested here does not depend on the cost."""
    monkeypatch.setattr(users, "_COST", (2, 8, 1))


@pytest.fixture
def guard(gallery: Gallery) -> Guard:
    for name, role in (("vera", "viewer"), ("tom", "teacher"), ("ada", "administrator")):
        users.add_user(gallery.engine, name, role, PASSWORD)
    return Guard(gallery)


@pytest.fixture
def public(gallery: Gallery, guard: Guard, serve: Any) -> Iterator[Any]:
    with serve(make_app(gallery, guard)) as client:
        yield client


def log_in(client: Any, name: str = "vera", password: str = PASSWORD, **more: str) -> Any:
    word = re.search(r'name="csrf" value="(\w+)"', client.get("/login").text)
    assert word is not None
    form = {"name": name, "password": password, "csrf": word[1], **more}
    return client.post("/login", data=form)


def bearer(gallery: Gallery, name: str) -> dict[str, str]:
    role = users.user_named(gallery.engine, name).role
    return {"Authorization": f"Bearer {users.issue(gallery.engine, name, role, 'token')}", **JSON}


# ---- roles


def test_every_route_and_every_role(public: Any, gallery: Gallery) -> None:
    """Cell by cell: 401 for those outside, 403 below the route's role, an answer from it on."""
    names = {"": "", "viewer": "vera", "teacher": "tom", "administrator": "ada"}
    headers = {role: bearer(gallery, name) if name else JSON for role, name in names.items()}
    table = routes_and_roles()
    assert len(table) >= 47
    assert {role for _, _, role in table} == {*names}
    for method, path, least in table:
        address = path.replace("{key}", "x").replace("{kind}", "x").replace("{verb}", "x")
        for role, sent in headers.items():
            status = public.request(method, address, headers=sent).status_code
            if list(names).index(role) >= list(names).index(least):
                # POST /login answers 403 to a form that is not its own, whoever sends it.
                assert status not in (401, 403) or address == "/login", (method, path, role)
            else:
                assert status == (403 if role else 401), (method, path, role)


def test_the_table_of_roles_in_the_documentation_is_current() -> None:
    page = (ROOT / "docs" / "administration.md").read_text()
    assert runpy.run_path(str(ROOT / "scripts" / "docs.py"))["role_table"]() in page


def test_a_route_that_names_no_role_is_refused(
    gallery: Gallery, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    from resight.web.routes import people

    monkeypatch.setattr(people.router, "routes", [*people.router.routes])
    people.router.get("/everything")(lambda: {})
    with pytest.raises(TypeError, match="/everything"):
        make_app(gallery, guard)


def test_the_page_offers_what_the_role_may_do(public: Any, gallery: Gallery) -> None:
    like = str(gallery.view.table.ids[gallery.view.persons == ""][0])
    for name, offered in (("vera", (False, False)), ("tom", (True, False)), ("ada", (True, True))):
        log_in(public, name)
        page = public.get(f"/search?like={like}&others=1").text
        assert ("/teach" in page, 'href="/log"' in page) == offered
        public.cookies.clear()


# ---- sessions


def test_logging_in_and_out(public: Any, gallery: Gallery, guard: Guard) -> None:
    assert public.get("/search?like=x", headers=HTML).headers["location"] == (
        "/login?next=%2Fsearch%3Flike%3Dx"
    )
    entered = log_in(public, next="/person?name=0001")
    assert (entered.status_code, entered.headers["location"]) == (303, "/person?name=0001")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "max-age=43200" in cookie
    secret = public.cookies[guard.session]
    assert len(secret) >= 43  # 256 bits
    assert not gallery.engine.traces([secret.encode(), PASSWORD.encode()])
    assert public.get("/person?name=0001").status_code == 200
    old = httpx.Cookies(public.cookies)
    word = public.get("/info.json").json()["csrf"]
    assert public.post("/logout", data={"csrf": "wrong"}).status_code == 403
    assert public.post("/logout", data={"csrf": word}).headers["location"] == "/login"
    public.cookies = old
    assert public.get("/info.json").status_code == 401  # the session is gone, not only the cookie
    whats = [(entry["what"], entry["who"]) for entry in latest(gallery.engine, 9)]
    assert whats == [("login", "vera"), ("person", "vera"), ("logout", "vera")]


def test_leading_elsewhere_after_login_is_refused(public: Any) -> None:
    for evil in ("https://evil.example/", "//evil.example", "/\\evil.example"):
        assert log_in(public, next=evil).headers["location"] == "/"


def test_sessions_expire_and_are_prolonged_by_use(
    public: Any, gallery: Gallery, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1.8e9]
    monkeypatch.setattr("resight.gallery.users.time.time", lambda: now[0])
    log_in(public)
    for _ in range(3):
        now[0] += 0.9 * guard.session_seconds
        assert public.get("/info.json").status_code == 200
    now[0] += 1.1 * guard.session_seconds
    assert public.get("/info.json").status_code == 401
    log_in(public)
    for _ in range(20):
        now[0] += 0.9 * guard.session_seconds
        last = public.get("/info.json").status_code
    assert last == 401  # twelve hours are the end in any case


def test_a_changed_or_removed_user_is_out_at_once(public: Any, gallery: Gallery) -> None:
    log_in(public, "tom")
    token = bearer(gallery, "tom")
    assert public.get("/labels.csv", headers=token).status_code == 200
    users.add_user(gallery.engine, "tom", "viewer", PASSWORD)
    assert public.get("/info.json").status_code == 401
    assert public.get("/labels.csv", headers=token).status_code == 403
    users.remove_user(gallery.engine, "tom")
    assert public.get("/info.json", headers=token).status_code == 401


def test_guesses_are_slowed_down_and_logged(public: Any, gallery: Gallery) -> None:
    answers = [log_in(public, "vera", f"guess {i}").status_code for i in range(9)]
    assert answers.count(401) <= 5
    assert answers[-1] == 429
    assert log_in(public).status_code == 429  # also with the right one, for as long
    failed = [e for e in latest(gallery.engine, 99) if e["what"] == "login failed"]
    assert len(failed) == answers.count(401)
    assert failed[0]["who"] == "vera"
    assert "guess 0" not in str(latest(gallery.engine, 99))


def test_a_secret_typed_as_the_name_is_not_logged(public: Any, gallery: Gallery) -> None:
    log_in(public, PASSWORD, "vera")
    assert latest(gallery.engine, 1)[0]["who"] == "unknown"
    assert not gallery.engine.traces([PASSWORD.encode()])


def test_wrong_tokens_are_slowed_down_and_logged(public: Any, gallery: Gallery) -> None:
    wrong = {"Authorization": "Bearer not-a-token", **JSON}
    answers = [public.get("/info.json", headers=wrong).status_code for _ in range(12)]
    assert answers.count(401) <= 5
    refused = [e["what"] for e in latest(gallery.engine, 99)]
    assert refused == ["token refused"] * answers.count(401)


def test_the_wait_doubles_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("resight.web.security.time.monotonic", lambda: now[0])
    slow, waits = SlowDown(), []
    for _ in range(16):
        slow.wrong("a")
        begin = now[0]
        while True:
            try:
                slow.check("a", "b")
                break
            except RefusedError:
                now[0] += 0.5
        waits.append(now[0] - begin)
    assert waits == [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]
    slow.right("a")
    slow.wrong("a")
    slow.check("a")


def test_names_nobody_has_take_as_long(gallery: Gallery, monkeypatch: pytest.MonkeyPatch) -> None:
    users.add_user(gallery.engine, "ada", "viewer", PASSWORD)
    hashed: list[str] = []
    whole = users._scrypt
    monkeypatch.setattr(users, "_scrypt", lambda *a: (hashed.append(a[0]), whole(*a))[1])
    assert users.check_password(gallery.engine, "nobody", "x") is None
    assert users.check_password(gallery.engine, "ada", "x") is None
    assert users.check_password(gallery.engine, "ada", PASSWORD) is not None
    assert hashed == ["x", "x", PASSWORD]


# ---- the link of the terminal


def test_a_link_is_good_for_one_login(gallery: Gallery, serve: Any) -> None:
    keys: list[str] = []
    with serve(make_app(gallery, Guard(gallery, on_link=keys.append))) as client:
        assert len(keys[0]) >= 43
        assert log_in(client, "", "", key="guessed").status_code == 401
        assert log_in(client, "", "", key=keys[0]).status_code == 303
        assert client.get("/log.json").status_code == 200  # an administrator
        client.cookies.clear()
        assert log_in(client, "", "", key=keys[0]).status_code == 401
        assert len(keys) == 2
        assert log_in(client, "", "", key=keys[1]).status_code == 303
    assert not gallery.engine.traces([key.encode() for key in keys])


def test_a_purpose_is_stated_on_logging_in(public: Any, gallery: Gallery) -> None:
    gallery.require(asks_purpose=True)
    assert log_in(public).status_code == 422
    assert log_in(public, purpose="case 12").status_code == 303
    like = str(gallery.view.table.ids[0])
    assert public.get(f"/search.json?like={like}").status_code == 200
    assert latest(gallery.engine, 1)[0]["purpose"] == "case 12"
    token = bearer(gallery, "vera")
    assert public.get(f"/search.json?like={like}", headers=token).status_code == 422
    token["Resight-Purpose"] = "case 13"
    assert public.get(f"/search.json?like={like}", headers=token).status_code == 200
    assert latest(gallery.engine, 1)[0]["purpose"] == "case 13"


def test_a_second_person_confirms_on_the_page(public: Any, gallery: Gallery, demo: Any) -> None:
    gallery.require(second_person=True)
    a, b = demo.unlabelled_pairs(gallery)[0]
    form = {"kind": "same", "a": a, "b": b}
    tom, ada = bearer(gallery, "tom"), bearer(gallery, "ada")
    assert public.post("/teach", data=form, headers=tom).json()["total"] == 0
    [waiting] = public.get("/taught.json", headers=ada).json()["taught"]
    assert waiting["waiting"] is True
    assert public.post("/teach", data=form, headers=tom).status_code == 422
    assert public.post("/teach", data=form, headers=ada).json()["total"] == 1


# ---- uploads belong to whoever sent them


def test_an_upload_is_its_owners_and_logged_by_its_digest(
    public: Any, gallery: Gallery, demo: Any
) -> None:
    from hashlib import sha256

    content = demo.sightings.files()[7].read_bytes()
    tom, ada = bearer(gallery, "tom"), bearer(gallery, "ada")
    key = public.post("/upload", files={"image": content}, headers=tom).json()["upload"]
    for address in (f"/upload/{key}", f"/search.json?upload={key}"):
        assert public.get(address, headers=ada).status_code == 404
        assert public.get(address, headers=tom).status_code == 200
    upload, search = latest(gallery.engine, 2)
    digest = f"sha256:{sha256(content).hexdigest()}"
    assert (upload["what"], upload["query"]) == ("upload", [digest])
    assert (search["what"], search["query"], search["who"]) == ("search", [digest], "tom")


# ---- addresses, hosts, certificates


def test_forwarded_headers_are_believed_from_the_named_proxy_alone(
    gallery: Gallery, guard: Guard, serve: Any
) -> None:
    forged = {**bearer(gallery, "vera"), "X-Forwarded-For": "203.0.113.9"}
    for proxy, address in (
        (None, "127.0.0.1"),
        ("127.0.0.1", "203.0.113.9"),
        ("10.0.0.1", "127.0.0.1"),
    ):
        with serve(make_app(gallery, guard), Settings(behind_proxy=proxy)) as client:
            client.get("/index.json", headers=forged)
        assert latest(gallery.engine, 1)[0]["address"] == address
    https = {"X-Forwarded-Proto": "https"}
    with serve(make_app(gallery, guard), Settings(behind_proxy="127.0.0.1")) as client:
        assert "secure" in client.get("/login", headers=https).headers["set-cookie"].lower()
        assert "secure" not in client.get("/login").headers["set-cookie"].lower()


def test_hosts_are_those_that_were_named(gallery: Gallery, serve: Any) -> None:
    guard = Guard(gallery, hosts=("people.example",), any_address=True)
    with serve(make_app(gallery, guard)) as client:
        for host, status in (
            ("people.example", 200), ("192.168.1.4:8000", 200), ("evil.example", 421),
            ("[::1]:8000", 200), ("people.example.evil.example", 421),
        ):  # fmt: skip
            assert client.get("/login", headers={"Host": host}).status_code == status, host


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_tls(gallery: Gallery, guard: Guard, serve: Any, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    trust = ssl.create_default_context(cafile=certificate)
    settings = Settings(certfile=certificate, keyfile=key)
    with serve(make_app(gallery, guard), settings, trust) as client:
        entered = log_in(client)
        assert entered.status_code == 303
        assert "secure" in entered.headers["set-cookie"].lower()
        assert client.get("/info.json").status_code == 200
        with pytest.raises(httpx.HTTPError):
            httpx.get(str(client.base_url).replace("https", "http"))
        with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
            httpx.get(str(client.base_url))


# ---- several servers on one gallery


def test_a_visitor_of_one_server_is_known_to_the_other(
    public: Any, gallery: Gallery, serve: Any, demo: Any
) -> None:
    log_in(public, "tom")
    word = public.get("/info.json").json()["csrf"]
    second = Gallery.open(demo.folder)
    with serve(make_app(second, Guard(second))) as other:
        other.cookies = public.cookies
        a, b = demo.unlabelled_pairs(gallery)[0]
        said = {"kind": "same", "a": a, "b": b, "csrf": word}  # a form of the first server
        assert other.post("/teach", data=said).status_code == 303
        hit = next(
            one for one in public.get(f"/search.json?like={a}").json()["hits"] if one["id"] == b
        )
        assert hit["verdict"] == "same"
        # What was uploaded for a search is in the memory of one server alone.
        picture = {"image": ("x.png", gallery.image(a))}
        sent = public.post("/upload", data={"csrf": word}, files=picture)
        assert public.get(sent.headers["location"]).status_code == 200
        lost = other.get(sent.headers["location"])
        assert (lost.status_code, "upload the image again" in lost.text) == (404, True)
        public.post("/logout", data={"csrf": word})
        assert other.get("/info.json").status_code == 401
    second.close()

"""The door: what is not from this person's page is refused, and nothing is written."""

import pytest
from studio_here import HOME, TOKEN, drawing, post

CHANGES = [
    ("PUT", "/api/drawing"),
    ("PUT", "/api/table?name=a.csv"),
    ("POST", "/api/example"),
    ("POST", "/api/fit"),
    ("POST", "/api/cancel"),
]


def refused(answer, status):
    assert answer.status_code == status
    sentence = answer.json()["refused"]
    assert sentence.endswith(".")
    assert len(sentence) < 200
    return sentence


def files(project):
    return sorted(str(path.relative_to(project.folder)) for path in project.folder.rglob("*"))


@pytest.mark.parametrize("address", ["/", "/?token=wrong", "/?token=", "/app.js", "/api/project"])
def test_without_the_token_nothing_is_shown(outside, address):
    refused(outside.get(address), 403)
    outside.cookies.set("misscnf-studio-8000", "wrong")
    refused(outside.get(address), 403)


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_without_the_token_nothing_is_changed(outside, project, method, path):
    before = files(project)
    headers = {"origin": HOME}
    refused(outside.request(method, path, json={}, headers=headers), 403)
    assert files(project) == before


def test_the_token_is_traded_for_a_cookie_that_no_script_and_no_site_sees(outside):
    answer = outside.get(f"/?token={TOKEN}")
    assert answer.headers["location"] == "/"
    words = answer.headers["set-cookie"].lower()
    assert "httponly" in words
    assert "samesite=strict" in words
    assert outside.get("/").status_code == 200


@pytest.mark.parametrize("host", ["evil.example:8000", "127.0.0.1:9999", "127.0.0.1", "localhost"])
def test_another_name_for_this_machine_is_refused(page, host):
    refused(page.get("/api/project", headers={"host": host}), 421)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999"])
@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_another_site_changes_nothing(page, project, origin, method, path):
    before = files(project)
    refused(page.request(method, path, json={}, headers={"origin": origin}), 403)
    refused(page.get("/api/project", headers={"origin": origin}), 403)
    assert files(project) == before


def test_a_change_without_an_origin_is_refused(page):
    del page.headers["origin"]
    refused(post(page, "/api/example"), 403)


def test_every_answer_says_what_a_browser_may_do_with_it(page):
    for path in ("/", "/app.js", "/api/project", "/nothing"):
        headers = page.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
    assert "<script>" not in page.get("/").text


@pytest.mark.parametrize("body", [b"{", b"[1, 2]", b'"x"', b"{}", b"\xff", b"[" * 5000])
def test_malformed_json_is_refused(page, project, body):
    before = files(project)
    kind = {"content-type": "application/json"}
    refused(page.put("/api/drawing", content=body, headers=kind), 400)
    assert files(project) == before


def test_json_that_is_called_something_else_is_refused(page):
    refused(page.post("/api/example", content=b"{}", headers={"content-type": "text/plain"}), 415)


def test_a_long_request_is_refused(page):
    given = {"drawing": drawing(*(f"a{i}" for i in range(4000))), "revision": 0}
    refused(page.put("/api/drawing", json=given), 413)


@pytest.mark.parametrize("said", [True, False], ids=["its length said", "its length not said"])
def test_a_table_that_is_too_long_leaves_nothing(page, project, said):
    def chunks():
        for _ in range(100):
            yield b"a,b\n" * 100

    content = b"a,b\n" * 10_000 if said else chunks()
    refused(page.put("/api/table?name=big.csv", content=content), 413)
    assert files(project) in (["tables", ".lock"], [".lock", "tables"])


def test_two_gigabytes_are_refused_before_they_come(page, project):
    headers = {"content-length": str(2 * 10**9)}
    sentence = refused(page.put("/api/table?name=a.csv", content=b"a", headers=headers), 413)
    assert "MB" in sentence
    assert not [*project.folder.rglob("*.csv")]


NAMES = ["", "..", ".", "../../x.csv", "/etc/x.csv", "a\\..\\b.csv", "x.exe", ".hidden.csv"]
NAMES += ["a\0.csv", "a\n.csv", "x" * 300 + ".csv"]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_goes_nowhere_but_into_the_project(page, project, name, table):
    answer = page.put("/api/table", params={"name": name}, content=table.to_csv(index=False))
    around = {path.name for path in project.folder.parent.iterdir()}
    assert around == {"project"}
    if answer.status_code == 200:
        kept = [path for path in project.folder.rglob("*.csv")]
        assert [path.parent.name for path in kept] == ["tables"]
    else:
        refused(answer, 422)
        assert not [*project.folder.rglob("*.csv")]


@pytest.mark.parametrize("path", ["/../project.json", "/static/../x", "/%2e%2e/project.json"])
def test_no_file_is_served_but_those_of_the_page(page, path):
    assert page.get(path).status_code == 404


def test_a_graph_is_read_from_its_text_and_never_from_a_file(page, tmp_path):
    secret = tmp_path / "secret.dot"
    secret.write_text("digraph { very -> secret }")
    answer = post(page, "/api/read", text=str(secret))
    assert "very" not in answer.text


def test_a_report_is_a_page_that_runs_nothing(page, project):
    refused(page.get("/report.html"), 404)
    (project.folder / "report.html").write_text("<script>alert(1)</script>")
    project.report = {"effect": None}
    policy = page.get("/report.html").headers["content-security-policy"]
    assert "sandbox" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy

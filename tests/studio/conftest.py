"""A page that asks a studio, with and without the token."""

import pandas as pd
import pytest

pytest.importorskip("starlette", reason="the extra studio is not installed")

from browsing import CHROMIUM, FLAGS
from starlette.testclient import TestClient
from studio_here import HOME, TOKEN, here

from misscnf.studio.project import Project


@pytest.fixture
def project(tmp_path):
    (tmp_path / "home").mkdir()
    opened = Project.open(tmp_path / "home" / "project")
    yield opened
    opened.close()


@pytest.fixture
def outside(project):
    """Somebody who does not know the token."""
    app, _ = here(project, largest=20_000, longest=100_000)
    with TestClient(app, base_url=HOME, follow_redirects=False) as client:
        yield client


@pytest.fixture
def page(outside):
    """The page: it has the cookie, and says where it is from."""
    outside.headers["origin"] = HOME
    assert outside.get(f"/?token={TOKEN}").status_code == 303
    return outside


@pytest.fixture
def table():
    rows = {"age": [50, 60, 70, None] * 20, "dose": [0, 1] * 40, "days": range(80)}
    return pd.DataFrame(rows)


@pytest.fixture
def opened(page, table):
    """The page with a table."""
    done = page.put("/api/table?name=patients.csv", content=table.to_csv(index=False))
    assert done.status_code == 200, done.text
    return page


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()

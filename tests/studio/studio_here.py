"""A studio without processes: its workers do their tasks here, so that a test is quick."""

import json

from misscnf.studio.server import make_app
from misscnf.studio.studio import Studio
from misscnf.studio.tasks import Desk

TOKEN, PORT = "a-secret", 8000
HOME = f"http://127.0.0.1:{PORT}"


class Here:
    """A worker in this process."""

    def __init__(self):
        self.desk = Desk()

    async def call(self, task, given, told=None):
        self.desk.told = told or (lambda _: None)
        return json.loads(json.dumps(self.desk.do(task, json.loads(json.dumps(given)))))

    async def stop(self):
        pass


def here(project, **limits):
    """Returns an application on a project, and its studio."""
    studio = Studio(project)
    studio._desk = studio._bench = Here()
    return make_app(studio, TOKEN, PORT, **limits), studio


def drawing(*names, edges=(), **more):
    nodes = [{"name": name, "x": 0.0, "y": 0.0} for name in names]
    return {"nodes": nodes, "edges": [list(edge) for edge in edges], **more}


def post(page, path, **given):
    return page.post(path, json=given)

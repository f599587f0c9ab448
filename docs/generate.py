"""Pages that are read off the code: public names, verbs, settings, and tables of results.

    docs/_generated/api/*.md           a page a public name of `misscnf`, one a module for the rest
    docs/_generated/command.md         what each verb says of itself
    docs/_generated/settings.md        every field of every settings class, with its reason
    docs/_generated/results/*.md       the tables of study/results/tables
    docs/_generated/brought/*.md       pages that live elsewhere in the repository

Links are written for the repository's page. Where one leaves docs/, it is turned towards the copy
of that page on the site, or becomes plain text where the site has none.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from names import PUBLIC_MODULES, methods, module_pages, public_names

__all__ = ["write_pages", "rewrite_links", "quiet_plots", "TutorialOrder"]

HERE = Path(__file__).parent
ROOT = HERE.parent
MADE = HERE / "_generated"

BROUGHT = {
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "study/README.md": "study",
    "study/docs/reproduce.md": "reproduce",
    "study/docs/results.md": "results",
    "study/docs/real.md": "real",
    "study/docs/rivals.md": "rivals",
    "study/docs/diary.md": "diary",
}
"""Pages from elsewhere in the repository, by their name on the site."""

TABLES = {
    "main-kl": "KL divergence from the truth, by samples",
    "main-kl_exact": "KL divergence from the truth, by exact log-densities",
    "main-ate": "Error of average effects",
    "main-cf": "Error of counterfactuals",
    "main-kl-against-published": "KL, ours beside the printed numbers",
    "main-kl_exact-against-published": "Exact KL, ours beside the printed numbers",
    "main-ate-against-published": "Effects, ours beside the printed numbers",
    "main-cf-against-published": "Counterfactuals, ours beside the printed numbers",
    "positivity-kl-against-published": "Positivity",
    "mnar-kl-against-published": "Values lost because of themselves",
    "as_run-kl-against-published": "The worlds that the paper ran, where they differ from print",
    "gaussian-kl-against-published": "Rivals with Gaussian mechanisms downstream",
    "real": "Real tables with known answers",
}
"""The tables of the study, with their headings."""


# ---------------------------------------------------------------------------------- all pages


def write_pages(docs: Path = HERE) -> None:
    """Writes every generated page that has changed, and removes those that nobody makes now."""
    pages = dict(_pages())
    folder = docs / MADE.name
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")  # what is left alone need not be read again
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in pages:
            path.unlink()


def _pages() -> Iterator[tuple[str, str]]:
    for module in PUBLIC_MODULES:
        yield from module_pages(module)
    yield "command.md", _command_page()
    yield "settings.md", _settings_page()
    for name, title in TABLES.items():
        path = ROOT / "study" / "results" / "tables" / f"{name}.md"
        if path.exists():
            made = f"`misscnf bench table`, from the rows under `{path.parent.parent.name}/`"
            text = path.read_text(encoding="utf-8")
            yield f"results/{name}.md", f"# {title}\n\nRendered by {made}.\n\n{text}"
    for source, name in BROUGHT.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        yield f"brought/{name}.md", _linked(text, source, f"docs/{MADE.name}/brought/{name}.md")


# -------------------------------------------------------------------------------------- links


def rewrite_links(app: object, name: str, source: list[str]) -> None:
    """Turns links that leave docs/ towards the site; called by Sphinx for every page it reads."""
    if not name.startswith((MADE.name, "tutorials")) and (HERE / f"{name}.md").exists():
        source[0] = _linked(source[0], f"docs/{name}.md", f"docs/{name}.md")
        if name == "api":
            source[0] = _names_linked(source[0])


def _linked(text: str, source: str, shown: str) -> str:
    """Returns a page with its links as they are where it is shown on the site."""

    def turned(found: re.Match[str]) -> str:
        word, link = found[2], found[3]
        if re.match(r"[a-z]+:", link) or link.startswith("#"):
            return found[0]
        target, _, place = link.partition("#")
        aim = os.path.normpath(os.path.join(os.path.dirname(source), target))
        if aim in BROUGHT:
            aim = f"docs/{MADE.name}/brought/{BROUGHT[aim]}.md"
        if not aim.startswith("docs/"):
            if aim == "README.md":
                aim, place = "docs/index.md", ""
            elif found[1]:  # a picture
                return f"{found[1]}[{word}]({os.path.relpath(aim, os.path.dirname(shown))})"
            else:
                return word if word.startswith("`") else f"{word} (`{aim}`)"
        path = os.path.relpath(aim, os.path.dirname(shown))
        if word in (link, os.path.basename(target)):
            word = ""  # the title of the page stands there then
        return f"{found[1]}[{word}]({path}{'#' if place else ''}{place})"

    parts = re.split(r"(^```[\s\S]*?^```$|^(?: {4,}.*\n)+)", text, flags=re.MULTILINE)
    link = re.compile(r"(!?)\[((?:[^\[\]]|`[^`]*`)*)\]\(([^)\s]+)\)")
    return "".join(p if i % 2 else link.sub(turned, p) for i, p in enumerate(parts))


def _names_linked(text: str) -> str:
    """Links each name of docs/api.md to its page."""
    module, lines = "", []
    for line in text.splitlines():
        if heading := re.fullmatch(r"## `([\w.]+)`", line):
            module = heading[1]
        elif (row := re.match(r"\| `(\w+)` \|", line)) and public_names(module):
            page = f"misscnf.{row[1]}.md" if module == "misscnf" else f"{module}.md"
            line = line.replace(f"`{row[1]}`", f"[`{row[1]}`]({MADE.name}/api/{page})", 1)
            for method in methods(module, row[1]):
                line = line.replace(f"`{method}`", f"{{py:obj}}`~{module}.{row[1]}.{method}`")
        lines.append(line)
    return "\n".join(lines)


# -------------------------------------------------------------------------------- the command


def _command_page() -> str:
    """Returns what each verb of the command says of itself."""
    import click
    import typer.main

    from misscnf.cli.app import VERBS, app

    group: Any = typer.main.get_command(app)
    parts = [
        "# The command, verb by verb",
        "What `misscnf VERB --help` prints. [The guide](../commands.md) says how the verbs go "
        "together, what they share, and which exit codes they have.",
    ]
    for name in VERBS:
        verb = group.commands[name]
        context = click.Context(
            verb, info_name=f"misscnf {name}", max_content_width=90, terminal_width=90
        )
        with context.scope(cleanup=False):
            told = verb.get_help(context)
        parts.append(f"## {name}\n\n```text\n{told.strip()}\n```")
    return "\n\n".join(parts) + "\n"


# ------------------------------------------------------------------------------- the settings


def _settings_page() -> str:
    """Returns every field of every settings class, with its default and its reason."""
    from misscnf.data.kinds import KindRules
    from misscnf.fitting.settings import PRESETS, Settings
    from misscnf.identification.settings import CheckSettings
    from misscnf.options import flatten
    from misscnf.report.settings import ReportSettings

    parts = [
        "# Settings",
        "Every number that shapes an answer is a field of a dataclass, with its reason beside it. "
        '`MissCNF(graph, settings={"selection.z": 2.0})` changes one by its name. A wrong name '
        "is refused with the nearest ones. They are saved with the model.",
        "## Of a fit\n\nGiven to `MissCNF(settings=…)`; `Settings` is the class.",
        *_groups(Settings(), ""),
        "### What the presets change\n\n" + _presets(PRESETS, flatten),
        "## Of a check\n\nGiven to `check(settings=…)`.",
        *_groups(CheckSettings(), ""),
        "## Of a report\n\nGiven to `write_report(settings=…)`.",
        *_groups(ReportSettings(), ""),
        "## Of the kinds of columns\n\nGiven to `describe_kinds(rules=…)`.",
        _fields(KindRules(), ""),
    ]
    return "\n\n".join(parts) + "\n"


def _groups(settings: Any, prefix: str) -> Iterator[str]:  # noqa: ANN401 - any settings class
    plain = _fields(settings, prefix)
    if plain:
        about = (inspect.getdoc(type(settings)) or "").replace("\n", " ")
        heading = f"### {prefix.rstrip('.') or 'At the top'}"
        yield f"{heading}\n\n{about}\n\n{plain}"
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            yield from _groups(value, f"{prefix}{field.name}.")


def _fields(settings: Any, prefix: str) -> str:  # noqa: ANN401 - any settings class
    reasons = _reasons(type(settings))
    rows = [
        f"| `{prefix}{field.name}` | `{_value(getattr(settings, field.name))}` "
        f"| {reasons.get(field.name, '')} |"
        for field in dataclasses.fields(settings)
        if not dataclasses.is_dataclass(getattr(settings, field.name))
    ]
    return "\n".join(["| setting | default | why |", "|---|---|---|", *rows]) if rows else ""


def _value(value: object) -> str:
    return re.sub(r"\|", r"\\|", repr(value))


def _reasons(cls: type) -> dict[str, str]:
    """Returns the text below each field of a dataclass."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = getattr(tree, "body", [])
        for field, after in itertools.pairwise(body):
            told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and told:
                words = inspect.cleandoc(str(after.value.value))
                found[field.target.id] = re.sub(r"\s+", " ", words).replace("|", r"\|")
    return found


def _presets(presets: Any, flatten: Any) -> str:  # noqa: ANN401 - as misscnf has them
    plain = {name: flatten(preset) for name, preset in presets.items()}
    base = plain["auto"]
    others = [name for name in plain if name != "auto"]
    rows = []
    for name, value in base.items():
        own = [plain[other].get(name) for other in others]
        if any(one != value for one in own):
            cells = " | ".join(f"`{_value(one)}`" for one in [value, *own])
            rows.append(f"| `{name}` | {cells} |")
    head = " | ".join(f"`{name}`" for name in ["auto", *others])
    return "\n".join([f"| setting | {head} |", "|---" * (len(others) + 2) + "|", *rows])


# -------------------------------------------------------------------------------- the gallery


class TutorialOrder:
    """The order of tutorials in the gallery: from the plain to the special."""

    order = (
        "quick_start.py",
        "quitting_smoking.py",
        "trial_with_drop_out.py",
        "no_complete_row.py",
        "holes_not_at_random.py",
        "hidden_cause.py",
        "treatment_over_time.py",
        "many_confounders.py",
        "gallery_of_plots.py",
    )

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Returns the place of a script; one that is not named comes last."""
        place = self.order.index(name) if name in self.order else len(self.order)
        return place, name


def quiet_plots(conf: object, name: str) -> None:
    """Sets pictures of a tutorial to the style of the package, and one thread to torch."""
    import matplotlib as mpl
    import torch

    from misscnf.display.style import STYLE

    mpl.rcParams.update({**STYLE.rc(), "figure.figsize": (6.0, 3.4), "figure.dpi": 110})
    torch.set_num_threads(1)

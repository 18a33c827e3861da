"""Write what comes from the code itself.

That is docs/cli.md, docs/reference.md, the list of learners in docs/learners.md, the roles in
docs/administration.md, the names that type checkers see (src/resight/__init__.pyi), the table of
the README and the drawn pictures.

Pages of measurements are written by the commands that measure (`resight reproduce --page`,
`make bench`), because those take long.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import resight
from resight._files import atomic_write
from resight.cli import VERBS
from resight.registry import LEARNERS

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ROOT / "docs" / "cli.md"
GUIDE = ROOT / "docs" / "learners.md"
STUB = ROOT / "src" / "resight" / "__init__.pyi"
REFERENCE = ROOT / "docs" / "reference.md"
README = ROOT / "README.md"
ADMINISTRATION = ROOT / "docs" / "administration.md"
BEGIN, END = "<!-- written by `make docs` -->\n", "<!-- end -->"

_INTRODUCTION = """Written by `make docs` from the commands' own help.

- **Output.** Results go to standard output, messages and errors to standard error; `--json` prints
  one JSON document. Exit codes: 0 success, 1 failure, 2 wrong usage. Where standard error is not a
  terminal, long work prints a line now and then instead of a progress bar.
- **Completion.** `resight --install-completion` sets up your shell; then `resight ev<TAB>` and
  `resight evaluate --le<TAB>` complete verbs and options.
- **Configuration files.** Commands with many settings take `--config FILE`, a TOML file whose keys
  are the long option names (and argument names); options on the command line win. For example,
  `resight evaluate --config run.toml` with

  ```toml
  data = "my/cameras"
  descriptor = "gog+lomo-dagger"
  learner = ["kxqda", "xqda"]
  jobs = 4

  [param.kxqda]
  reg = 1e-3
  ```"""


def command_page() -> str:
    """Return the page of all verbs: their own help."""
    parts = ["# Command line", _INTRODUCTION, _block([])]
    for verb in VERBS:
        parts += [f"## resight {verb}", _block([verb])]
        for sub in _subcommands(verb):
            parts += [f"### resight {verb} {sub}", _block([verb, sub])]
    return "\n\n".join(parts) + "\n"


def type_stub() -> str:
    """Return the public names of `resight` as a type checker reads them: imported at once."""
    homes = sorted((module, there, name) for name, (module, there) in resight._homes().items())
    imports = [f"from {module} import {there} as {name}" for module, there, name in homes]
    names = "\n".join(f'    "{name}",' for name in sorted(resight.__all__))
    head = ["# Written by `make docs` from the tables in __init__.py and registry.py."]
    return "\n".join([*head, *imports, "", "__version__: str", f"__all__ = [\n{names}\n]", ""])


def guide() -> str:
    """Return docs/learners.md with its list of learners written anew from the registry."""
    rows = ["| class | `--learner` | what it does |", "|---|---|---|"]
    for spec in LEARNERS.values():
        summary = getattr(resight, spec.class_name).__doc__.splitlines()[0]
        note = "" if spec.normalize or spec.name == "auto" else " Descriptors are not normalised."
        rows.append(f"| `{spec.class_name}` | `{spec.name}` | {summary}{note} |")
    return _with_part(GUIDE, "\n".join(rows))


# Public names by task, each under the module that users import it from; learners stand apart,
# because the registry lists them.
TASKS: dict[str, tuple[str, str]] = {
    "The flow": (
        "From sightings to answers. `sightings` reads them, `evaluate` measures, `fit` learns, "
        "`Gallery` searches, `load` opens what was saved, `connect` talks to a served gallery.",
        "resight: sightings Sightings evaluate Result fit Model load Gallery connect FeatureStore "
        "cluster",
    ),
    "Data": (
        "Published datasets, own folders and tables, synthetic cameras, video.",
        "resight.datasets: DATASETS Dataset load read_folder read_table write_table fingerprint\n"
        "resight.datasets.synthetic: draw_cameras draw_person\n"
        "resight.datasets.video: cut Cut",
    ),
    "Images": (
        "Files to arrays.",
        "resight.images: read cut as_rgb MAX_BYTES MAX_PIXELS VERSION\n"
        "resight.images.light: grey_world",
    ),
    "Descriptors and networks": (
        "An image becomes a vector; nothing is learned.",
        "resight.descriptors: lomo gog whos LOMO GOG WHOS Network descriptor DESCRIPTORS\n"
        "resight.networks.preprocessing: Preprocessing\n"
        "resight.networks.session: Session Tensor\n"
        "resight.features.vectors: load_vectors",
    ),
    "Learners": ("Vectors, persons and cameras become a distance.", "resight: BlockNormalizer"),
    "Protocols": (
        "Who trains, who is query, who is gallery.",
        "resight.protocols: for_dataset possible half_half from_file Protocol Split person_scores "
        "scored_persons",
    ),
    "Evaluation": (
        "Distances become figures and pictures.",
        "resight: CMCDisplay\n"
        "resight.evaluation: cmc mean_average_precision mean_inverse_negative_penalty "
        "average_precisions RankingResult\n"
        "resight.report: write",
    ),
    "Gallery": (
        "What a search returns and takes.",
        "resight.gallery: Filter Hit Hits Added Described",
    ),
    "Explanation": (
        "Why two sightings are alike.",
        "resight.explanation: Explainer Explanation Share",
    ),
}


def documented() -> dict[str, list[str]]:
    """Return the dotted names of every task of the reference."""
    tasks = {}
    for task, (_, homes) in TASKS.items():
        names = [
            f"{home}.{name}"
            for home, _, words in (line.partition(": ") for line in homes.splitlines())
            for name in words.split()
        ]
        if task == "Learners":
            classes = dict.fromkeys(spec.class_name for spec in LEARNERS.values())
            names += [f"resight.{name}" for name in classes]
        tasks[task] = names
    return tasks


def reference() -> str:
    """Return the page of every public name, by task."""
    parts = ["# Python reference", "Written by `make docs`. Every public name, by task."]
    for task, names in documented().items():
        listed = "\n".join(f"   {name}" for name in names)
        table = f"```{{eval-rst}}\n.. autosummary::\n   :toctree: api\n\n{listed}\n```"
        parts += [f"## {task}", TASKS[task][0], table]
    errors = "```{eval-rst}\n.. automodule:: resight.errors\n   :members:\n```"
    return "\n\n".join([*parts, "## Errors", errors]) + "\n"


# What the README shows: title, heading in docs/tables.md and auto_tables.md, that in networks.md.
REACHED = (
    ("CUHK01, single-shot", "Table4", "cuhk01-single-shot"),
    ("CUHK01, multi-shot", "Table5", "cuhk01-multi-shot"),
    ("PRID450S", "Table6", "prid450s"),
    ("GRID", "Table7", "grid"),
    ("PRID2011", "Table3", "prid2011"),
)


def reached() -> str:
    """Return the README's table: rank 1 from the pages that `resight reproduce` wrote."""
    pages = (ROOT / "docs" / name for name in ("tables.md", "auto_tables.md", "networks.md"))
    paper, chosen, networks = (page.read_text("utf-8") for page in pages)
    heads = ["paper", "k-XQDA as the paper sets it", "`auto`"]
    heads += ["a network's cosine \\*", "`auto` with that network \\*"]
    rows = [f"| rank 1, % | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for title, table, name in REACHED:
        ours, printed = _first_cell(paper, table, "k-XQDA `paper`")
        cells = [printed, ours, _first_cell(chosen, table, "k-XQDA `auto`")[0]]
        methods = ("network, cosine *", "network + hand-made, recipe *")
        cells += [_first_cell(networks, name, method)[0] for method in methods]
        rows.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _first_cell(page: str, heading: str, row: str) -> tuple[str, str]:
    """Return what was measured and what was printed, in the first cell of a row of a page."""
    section = re.search(rf"^## {heading}\b.*?(?=^## |\Z)", page, re.M | re.S)
    place = section and re.search(
        rf"^\| {re.escape(row)}[^|]*\|\s*([\d.]+)[^|(]*(?:\(([\d.]+)\))?", section[0], re.M
    )
    return (place[1], place[2] or "") if place else ("", "")


def readme() -> str:
    """Return README.md with its table written anew from the measured pages."""
    return _with_part(README, reached())


def administration() -> str:
    """Return docs/administration.md with its table of roles written anew from the routes."""
    return _with_part(ADMINISTRATION, role_table())


def _with_part(page: Path, part: str) -> str:
    """Return a page with what stands between its two marks replaced."""
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"{page.name} has lost its marks: {BEGIN.strip()} ... {END}"
    return f"{before}{begin}{part}\n{end}{after}"


def role_table() -> str:
    """Return the table of every route and who may use it, from the application itself."""
    from resight.gallery.users import ROLES
    from resight.web.app import routes_and_roles

    rows = [["route", "not logged in", *ROLES], ["---"] * (len(ROLES) + 2)]
    for method, path, least in routes_and_roles():
        first = ("", *ROLES).index(least)
        cells = ["yes" if first <= place else "" for place in range(len(ROLES) + 1)]
        rows.append([f"`{method} {path}`", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def help_text(words: list[str]) -> str:
    """Return the help of a command, for a terminal of 100 columns."""
    surroundings = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "resight", *words, "--help"]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=True)
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def _block(words: list[str]) -> str:
    return f"```text\n{help_text(words)}\n```"


def _subcommands(verb: str) -> list[str]:
    from resight.cli._commands import command

    return [*getattr(command(verb), "commands", ())]


def main() -> None:
    """Write everything."""
    pages = ((COMMANDS, command_page()), (GUIDE, guide()), (STUB, type_stub()))
    pages += ((REFERENCE, reference()), (README, readme()), (ADMINISTRATION, administration()))
    for path, text in pages:
        with atomic_write(path, "w") as stream:
            stream.write(text)
    for script in ("draw_descriptors.py", "draw_explanation.py"):
        subprocess.run([sys.executable, str(ROOT / "scripts" / script)], check=True)


if __name__ == "__main__":
    main()

"""Write docs/learning-curve.md and its picture from an evaluation with a learning curve.

resight evaluate cuhk01 --root DATA --protocol cuhk01-single-shot --descriptor gog \
    --learner kxqda --curve --people 25,50,100,200,486 --out OUT
python scripts/learning_curve.py OUT
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from resight._files import atomic_write
from resight.experiments.tables import curve_table
from resight.report.displays import LearningCurveDisplay
from resight.report.result_files import read_result

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "learning-curve.md"
PICTURE = ROOT / "docs" / "images" / "learning-curve.svg"


def page(result: dict[str, Any]) -> str:
    """Return the page of a result whose first run has a learning curve."""
    run, protocol = result["runs"][0], result["protocol"]
    curve = run["learning_curve"]
    sizes = ",".join(str(point["people"]) for point in curve["points"])
    name, learner = result["dataset"]["name"], run["learner"]
    descriptors = "+".join(run["descriptors"])
    command = (
        f"resight evaluate {name} --root DATA --protocol {protocol['name']} --descriptor "
        f"{descriptors} \\\n    --learner {learner} --curve --people {sizes} --out OUT"
    )
    parts = [
        "# How many people must be labelled?",
        "`resight evaluate --curve` answers it on your own data: every learner is also fitted on "
        "fewer of each split's training people and asked for the same others. By default it takes "
        "all people, half of them, a quarter, down to a sixteenth; `--people 25,50,100` names "
        "other numbers. Subsets are drawn three times in each split and nested: more people means "
        "the same ones and some more. Only people seen by two cameras are counted. All fits start "
        "from the inner products that the evaluation computed, so no image is described again. "
        "The table is printed, kept in `result.json` (`learning_curve` of each run) and drawn in "
        "the report, with bands of one standard deviation over splits and draws.",
        f"## {name}",
        f"{run['title']} with its default parameters, {protocol['splits']} splits, gallery of "
        f"{protocol['gallery']}; {protocol['train']} training sightings of "
        f"{protocol['train_people']} people at the end of the curve. Made by",
        f"```bash\n{command}\npython scripts/learning_curve.py OUT\n```",
        curve_table(curve),
        f"![Rank 1 against the number of labelled people](images/{PICTURE.name})",
        curve["sentence"],
        "Percent, mean over splits and draws, ± standard deviation. The last row uses everybody, "
        "so it has one fit in each split.",
        "## What it cannot tell",
        "The pace at the end is that of the last two points; curves flatten, so what twice as many "
        "people would bring is an upper guess. People are drawn at random, not picked as somebody "
        "would label them (see [gallery.md](gallery.md) for teaching while searching). The "
        "setting is fixed: what few people would gain by a setting chosen for them is not in it.",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Write page and picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder that resight evaluate wrote")
    result = read_result(parser.parse_args().out)
    display = LearningCurveDisplay.from_document(result)
    if display is None:
        parser.error("this result has no learning curve; evaluate with --curve")
    for file, text in ((PAGE, page(result)), (PICTURE, display.svg())):
        with atomic_write(file, "w") as stream:
            stream.write(text)


if __name__ == "__main__":
    main()

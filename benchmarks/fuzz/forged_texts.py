"""Tables, splits, settings and results that are damaged, nested or hold what nobody may say."""

from __future__ import annotations

HUGE = "9" * 30
DEEP = "[" * 100_000


def tables() -> dict[str, bytes]:
    """Tables of sightings, called t.csv."""
    head = "path,person,camera"
    rows = {
        "time 1e300": f"{head},time\na,b,c,1e300",
        "time of 20 digits": f"{head},time\na,b,c,{HUGE[:20]}",
        "time in milliseconds": f"{head},time\na,b,c,1700000000000",
        "time nan": f"{head},time\na,b,c,nan",
        "time before Christ": f"{head},time\na,b,c,-0500-01-01",
        "time inf": f"{head},time\na,b,c,inf",
        "a box of 30 digits": f"{head},x,y,w,h\na,b,c,0,0,1,{HUGE}",
        "a box of 1e400": f"{head},x,y,w,h\na,b,c,0,0,1,1e400",
        "a box of nan": f"{head},x,y,w,h\na,b,c,0,0,1,nan",
        "a box turned round": f"{head},x,y,w,h\na,b,c,0,0,-1,4",
        "a person with a bell": f"{head}\na,\x07b,c",
        "a person turned round": f"{head}\na,\u202eb,c",
        "a camera with a line break": f'{head}\na,b,"c\nd"',
        "a path with a NUL": f"{head}\na\0,b,c",
        "a person too long": f"{head}\na,{'b' * 300},c",
        "a path too long": f"{head}\n{'a' * 5000},b,c",
        "a line too long": f"{head}\n" + "a" * 200_000,
        "no camera": f"{head}\na,b,",
        "an unknown column": f"{head},nonsense\na,b,c,d",
        "a column twice": f"{head},path\na,b,c,d",
        "quotes without end": f'{head}\n"a,b,c',
        "only columns": head,
        "nothing": "",
        "blank": "\n\n",
        "a million columns": ",".join(["path"] * 100_000),
        "an unknown role": f"{head},role\na,b,c,d",
        "binary": "\x00\x01\x02" * 100,
        "a device as image": f"{head}\n/dev/zero,b,c\n/dev/null,b,d",
    }
    found = {name: text.encode() for name, text in rows.items()}
    return found | {
        "UTF-16": f"{head}\na,b,c".encode("utf-16"),
        "Latin-1": f"{head}\nä,b,c".encode("latin-1"),
    }


def splits() -> dict[str, bytes]:
    """Files of splits, called s.json."""
    texts = [
        DEEP,
        '{"a":' * 50_000,
        "",
        "null",
        "7",
        "[]",
        "{}",
        "[1]",
        '[{"train": 1}]',
        "NaN",
        '{"splits": NaN}',
        '[{"train": ["0001"], "test": ["nobody"]}]',
        '{"splits": []}',
        "[[]]",
        '[{"train": ["0001"], "test": ["0001"]}]',
        '{"splits": [{}], "scoring": 7}',
        '[{"train": [1e400], "test": [null]}]',
        '{"splits": [{"train": {}, "test": {}}]}',
        "1" * 10_000,
    ]
    return {f"splits {text[:40]}": text.encode() for text in texts} | {"binary": b"\xff\xfe\0\1"}


def settings() -> dict[str, bytes]:
    """Files of settings, called c.toml."""
    texts = [
        "jobs = " + "[" * 20_000,
        "jobs = 'many'",
        "jobs = nan",
        "jobs = 99999999999999999999",
        "nonsense = 1",
        "descriptor = 7",
        "descriptor = {a = {b = 1}}",
        "jobs",
        "[jobs]",
        'descriptor = "\\u0000"',
        'descriptor = "\\u202Egog"',
        "jobs = 1\njobs = 2",
        "a" * 2_000_000,
        "descriptor = 2024-05-31",
        "json = 7",
        "jobs = []",
        "a." * 20_000 + "b = 1",
    ]
    return {f"settings {text[:40]}": text.encode() for text in texts} | {
        "binary settings": bytes(range(256)) * 20,
        "UTF-16 settings": "jobs = 1".encode("utf-16"),
    }


def results() -> dict[str, bytes]:
    """Results, called result.json."""
    schema = '{"schema": "resight.result/1"'
    texts = [
        DEEP,
        "",
        "[]",
        "{}",
        "7",
        '{"schema": 7}',
        schema + "}",
        schema + ', "runs": 7}',
        schema + ', "runs": [{}], "dataset": {}, "protocol": {}}',
        schema + ', "runs": NaN}',
    ]
    return {f"result {text[:60]}": text.encode() for text in texts} | {"binary": b"\xff" * 99}

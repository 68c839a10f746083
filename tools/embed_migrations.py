#!/usr/bin/env python3
"""Writes the numbered SQL files named on the command line as a C table: OUTPUT FILE.sql..."""
import pathlib
import re
import sys

NAME = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")


def c_bytes(text: str) -> str:
    """As bytes: a string literal may be no longer than 4095 bytes in portable C."""
    return ", ".join(str(byte) for byte in text.encode()) + ", 0"


def main(output: str, files: list[str]) -> int:
    rows, arrays = [], []
    for expected, file in enumerate(sorted(files, key=lambda f: pathlib.Path(f).name), 1):
        path = pathlib.Path(file)
        match = NAME.match(path.name)
        if not match or int(match[1]) != expected:
            print(f"{file}: migrations are NNNN_name.sql, numbered from 0001 without gaps", file=sys.stderr)
            return 1
        arrays.append(f"static const char sql_{match[1]}[] = {{ {c_bytes(path.read_text())} }};\n")
        rows.append(f'    {{ {int(match[1])}, "{match[2]}", sql_{match[1]} }},\n')
    pathlib.Path(output).write_text(
        "/* Made by tools/embed_migrations.py from the files in src/store/migrations. */\n"
        '#include "store/migrate.h"\n\n'
        + "".join(arrays)
        + "\nconst struct migration store_migrations[] = {\n" + "".join(rows) + "};\n"
        "const size_t store_migration_count = sizeof(store_migrations) / sizeof(store_migrations[0]);\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

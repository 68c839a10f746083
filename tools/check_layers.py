#!/usr/bin/env python3
"""Fails when a folder includes one that it may not know about.

src/<folder> may include itself and what stands beside it here. Tests of a folder (tests/unit/<folder>,
tests/<folder>) may include what it may, the pure folders, `os`, `unit` (the helpers), and headers beside
them. Other tests talk to programs from outside and include only what the command line may.
"""
import pathlib
import re
import sys

MAY_USE = {
    "base": "",
    "os": "base",
    "model": "base",
    "sched": "base model",
    "ledger": "base model",
    "access": "base model",
    "core": "base model sched ledger access",
    "store": "base os model",
    "net": "base os",
    "wire": "base model",
    "engine": "base model wire core store",
    "identity": "base os model net",
    "sites": "base os model net wire",
    "api": "base model access ledger net wire core identity store",
    "controller": "base os model sched ledger access core store net wire engine identity sites api",
    "agent": "base os model net wire",
    "cli": "base os model net wire",
    "sim": "base os model sched ledger access core store wire engine agent",
}

# An arrow that is narrower than a folder: only these headers of it.
ONLY = {
    ("engine", "store"): {"store.h"},
    ("api", "store"): {"query.h"},
    ("sim", "agent"): {"reconcile.h"},
}

PURE = "base model sched ledger access core"
MORE_FOR = {"fuzz": "store"}  # targets that look into a folder which larger tests leave alone
TESTS_OF = {"gpu": "agent"}  # kinds of larger tests that look into a folder of another name

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
LARGER_TESTS = "base os model net wire"


def allowed_for(parts: tuple[str, ...]) -> tuple[str, set[str]]:
    """The folder that a file belongs to, and what it may include."""
    if parts[0] == "src":
        folder = parts[1]
        return folder, {folder, *MAY_USE.get(folder, "").split()}
    folder = parts[2] if parts[1] == "unit" and len(parts) > 3 else parts[1]
    folder = folder.split("_")[0]  # agent_gpu are tests of a part of agent
    folder = TESTS_OF.get(folder, folder)
    uses = {folder, *MAY_USE.get(folder, LARGER_TESTS).split(), *MORE_FOR.get(folder, "").split()}
    return "/".join(parts[:-1]), {"unit", "os", *PURE.split(), *uses}


def wrong_include(folder: str, allowed: set[str], target: str) -> str | None:
    """Why a file of `folder` may not include `target`, or None."""
    head, _, rest = target.partition("/")
    if not rest:
        return f'"{target}" names no folder: include paths start at src/'
    if ".." in target.split("/"):
        return f'"{target}" climbs: include paths start at src/'
    if head not in allowed:
        return f"{folder}/ may not include {head}/"
    only = ONLY.get((folder, head))
    if only is not None and rest not in only:
        return f"{folder}/ may include only {', '.join(sorted(only))} of {head}/"
    return None


def check(root: pathlib.Path) -> list[str]:
    """One line for each include that is not allowed."""
    found = []
    for top in ("src", "tests"):
        for path in sorted((root / top).rglob("*.[ch]")):
            relative = path.relative_to(root)
            if len(relative.parts) < 3:
                continue
            if top == "src" and relative.parts[1] not in MAY_USE:
                found.append(f"{relative}:1: src/{relative.parts[1]}/ has no arrows in {__file__}")
                continue
            folder, allowed = allowed_for(relative.parts)
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                match = INCLUDE.match(line)
                if match and top == "tests" and (path.parent / match[1]).is_file():
                    continue
                why = wrong_include(folder, allowed, match[1]) if match else None
                if why:
                    found.append(f"{relative}:{number}: {why}")
    return found


if __name__ == "__main__":
    FINDINGS = check(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print("\n".join(FINDINGS), end="\n" if FINDINGS else "")
    sys.exit(1 if FINDINGS else 0)

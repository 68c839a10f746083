#!/usr/bin/env python3
"""Holds the OpenAPI document, as a program prints it, against the schema of OpenAPI 3.1.

Usage: check_openapi.py SCHEMA PROGRAM [ARGUMENT...]. Prints TAP. The schema leaves the schemas inside of
a document open, so those are checked as JSON Schema (2020-12) by themselves; then what no schema can
say: references that lead somewhere, parameters of paths, unique operations. Where the package
openapi-spec-validator is installed, it has its say as well.
"""
import json
import re
import subprocess
import sys

import jsonschema

METHODS = ("get", "put", "post", "delete", "patch")
failures = 0
count = 0


def check(name: str, problems: list[str]) -> None:
    """One line of TAP; what is wrong goes into comments."""
    global failures, count
    count += 1
    failures += bool(problems)
    print(f"{'not ' if problems else ''}ok {count} - {name}")
    for problem in problems[:10]:
        print(f"# {problem}")


def schema_problems(schema: dict, document: dict) -> list[str]:
    """What the schema of OpenAPI has against the document."""
    validator = jsonschema.Draft202012Validator(schema)
    return [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(document)]


def component_problems(document: dict) -> list[str]:
    """Components that are no JSON Schema."""
    problems = []
    for name, schema in document["components"]["schemas"].items():
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            problems.append(f"{name}: {error.message}")
    return problems


def references(node: object) -> list[str]:
    """Every $ref below a node."""
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [ref for value in node.values() for ref in references(value)]
    if isinstance(node, list):
        return [ref for value in node for ref in references(value)]
    return []


def reference_problems(document: dict) -> list[str]:
    """References that lead nowhere, and components that nothing refers to."""
    prefix = "#/components/schemas/"
    known = {prefix + name for name in document["components"]["schemas"]}
    used = set(references(document))
    return [f"{ref} leads nowhere" for ref in used - known] + [f"{ref} is not used" for ref in known - used]


def operations(document: dict) -> list[tuple[str, str, dict]]:
    """Every (path, method, operation)."""
    return [
        (path, method, item[method]) for path, item in document["paths"].items() for method in METHODS if method in item
    ]


def parameter_problems(document: dict) -> list[str]:
    """Paths whose placeholders and parameters differ."""
    problems = []
    for path, method, operation in operations(document):
        wanted = set(re.findall(r"\{([a-z_]+)\}", path))
        given = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
        if wanted != given:
            problems.append(f"{method} {path}: {sorted(wanted)} and {sorted(given)}")
        names = [(p["in"], p["name"]) for p in operation["parameters"]]
        if len(names) != len(set(names)):
            problems.append(f"{method} {path}: a parameter is there twice")
    return problems


def operation_problems(document: dict) -> list[str]:
    """Operation ids that are not unique."""
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    return [f"{name} is there {ids.count(name)} times" for name in set(ids) if ids.count(name) > 1]


def validator_problems(document: dict) -> list[str] | None:
    """What openapi-spec-validator says; None when it is not installed."""
    try:
        from openapi_spec_validator import OpenAPIV31SpecValidator
    except ImportError:
        return None
    return [str(error.message) for error in OpenAPIV31SpecValidator(document).iter_errors()]


def main() -> int:
    """Runs the program and checks what it prints."""
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    printed = subprocess.run(sys.argv[2:], check=True, capture_output=True).stdout
    document = json.loads(printed)
    check("is what the schema of OpenAPI 3.1 allows", schema_problems(schema, document))
    check("every component is a JSON Schema", component_problems(document))
    check("references and components belong together", reference_problems(document))
    check("placeholders of paths are parameters", parameter_problems(document))
    check("operations have ids of their own", operation_problems(document))
    problems = validator_problems(document)
    if problems is None:
        print(f"ok {count + 1} - openapi-spec-validator agrees # SKIP it is not installed")
    else:
        check("openapi-spec-validator agrees", problems)
    print(f"1..{max(count, 6)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

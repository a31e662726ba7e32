"""What Schemathesis is told about this server: ids of what is there, so that requests reach more than a 404."""

import json
import os
import uuid

import schemathesis

# Path parameters with values that exist; and ids that have to stay, like those of the tokens that it works with.
KNOWN = json.loads(os.environ["PUNCTUAL_KNOWN"])
KEPT = set(json.loads(os.environ["PUNCTUAL_KEPT"]))
TOKEN = os.environ["PUNCTUAL_TOKEN"]


@schemathesis.hook
def before_call(context, case, kwargs):
    """Two of three well-formed values become one that is there. What is malformed stays: it has to be refused."""
    if case.operation.path == "/api/token":
        sign_in(case.body)
    parameters = case.path_parameters
    if case.method == "DELETE" or not parameters:
        return
    for name, values in KNOWN.items():
        if name in parameters and is_well_formed(name, parameters[name]):
            choice = sum(str(parameters[name]).encode(errors="replace")) % (len(values) * 3 // 2)
            if choice < len(values):
                parameters[name] = values[choice]


def sign_in(body):
    """Most secrets become a good one: guesses are answered more and more slowly."""
    secret = body.get("keySecret") if isinstance(body, dict) else None
    if isinstance(secret, str) and secret and sum(secret.encode(errors="replace")) % 8:
        body["keySecret"] = TOKEN


def is_well_formed(name, value):
    if not name.endswith("Id"):
        return True
    try:
        uuid.UUID(str(value))
    except ValueError:
        return False
    return True


@schemathesis.hook
def filter_case(context, case):
    """Nothing that is needed later is taken away."""
    return case.method != "DELETE" or not KEPT & set(map(str, (case.path_parameters or {}).values()))

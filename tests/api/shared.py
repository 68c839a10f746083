"""What the groups of tests/api have in common."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../blackbox"))
from berthbox import Tap

tap = Tap()
PASSWORD = "canary-registry-password-5f1c"


def refused(answer, status, cause, field, name):
    """A refusal in the form of RFC 9457, with the right status, cause and field."""
    return tap.check(answer.status == status and answer.problem == (cause, field), name,
                     "wanted %d %s %s\n%r" % (status, cause, field, answer))

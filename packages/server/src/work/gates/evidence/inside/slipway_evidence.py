"""A pytest plugin: writes one line per test as it ends."""
import json
import os

_ended = {}
_out = None


def pytest_runtest_logreport(report):
    # With several processes, the process that collects the results has this too.
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
    before = _ended.get(report.nodeid, "passed")
    _ended[report.nodeid] = outcome if before == "passed" else before
    if report.when == "teardown":
        _write(report.nodeid, _ended.pop(report.nodeid))


def _write(nodeid, outcome):
    global _out
    if _out is None:
        _out = open(f"{os.environ['SLIPWAY_EVIDENCE']}/pytest.{os.getpid()}.json", "a")
    file, _, name = nodeid.partition("::")
    _out.write(json.dumps({"file": file, "name": name, "outcome": outcome}) + "\n")
    _out.flush()

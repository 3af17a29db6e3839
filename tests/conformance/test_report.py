"""The report, which needs no PyTorch."""

from tests.conformance import report
from tests.conformance.families import family_of

PASSED = {"tried": 2, "failed": 0, "dtypes": {"float64": True, "int64": True}, "failures": []}
FAILED = {"tried": 2, "failed": 1, "dtypes": {"float64": True, "int64": False}, "failures": ["expected 1, got 2"]}
FAMILIES = {"add": "elementwise, several inputs", "sum": "reductions"}
RESULTS = {"add": {"exists": PASSED, "forward": PASSED}, "sum": {"exists": PASSED, "forward": FAILED}}


def test_an_entry_passes_a_kind_only_if_no_sample_fails() -> None:
    assert report.count(RESULTS, "forward") == (1, 2)
    assert report.count(RESULTS, "backward") == (0, 0)


def test_the_last_line_holds_the_counts() -> None:
    line = report.last_line(RESULTS, 3)

    assert line.startswith("2 entries: exists 2/2, forward 1/2, backward -")
    assert line.endswith("3 public names missing")


def test_failures_are_said_in_words() -> None:
    assert report.failures(RESULTS, 1) == ["sum: forward: 1 of 2 fail", "    expected 1, got 2"]


def test_the_document_strikes_the_dtypes_that_differ() -> None:
    page = report.document(FAMILIES, RESULTS, {"torch": ["missing_name"]})

    assert "| `add` | d i |" in page
    assert "| `sum` | d ~~i~~ |" in page
    assert "- `torch`: `missing_name`" in page


def test_families_follow_from_names() -> None:
    assert family_of("linalg.det") == "linear algebra"
    assert family_of("cumsum") == "reductions"
    assert family_of("hypot") == "elementwise, several inputs"

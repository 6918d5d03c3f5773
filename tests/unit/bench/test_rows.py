"""Rows compute right, from numbers that are given."""

import pytest
from bench.rows import FEW, MANY, ROWS, SIZE, Ratio, Row, result
from bench.samples import Measure, Samples

OURS = Measure("ours", "gang", "barrier", 4)
THEIRS = Measure("theirs", "calls", "barrier", 4)
OTHERS = Measure("others", "calls", "barrier", 4)
ROW = Row("ours beside theirs", 0.8, (Ratio(OURS, THEIRS),))


def samples(**seconds: list[float]) -> Samples:
    taken = Samples()
    for measure in (OURS, THEIRS, OTHERS):
        if measure.subject in seconds:
            taken.add(measure, seconds[measure.subject])
    return taken


def test_a_ratio_is_of_medians() -> None:
    it = result(ROW, samples(ours=[1.0, 3.0, 100.0], theirs=[4.0, 4.0, 5.0]))
    assert [value for _, value in it.values] == [0.75]
    assert (it.verdict, str(it)) == ("reached", "ours beside theirs: 0.75; limit 0.8: reached")


def test_a_ratio_can_be_of_means() -> None:
    row = Row("means", 0.8, (Ratio(OURS, THEIRS, "mean"),))
    it = result(row, samples(ours=[1.0, 1.0, 7.0], theirs=[2.0]))
    assert [value for _, value in it.values] == [1.5]
    assert it.verdict == "not reached"


def test_the_limit_itself_is_reached() -> None:
    assert result(ROW, samples(ours=[4.0], theirs=[5.0])).verdict == "reached"


def test_a_time_is_in_microseconds() -> None:
    it = result(Row("a time", 120.0, (Ratio(OURS, None),), unit="us"), samples(ours=[0.0001]))
    assert str(it) == "a time: 100.00 us; limit 120 us: reached"


def test_a_missing_peer_is_told_with_its_reason() -> None:
    taken = samples(ours=[1.0])
    taken.lack("No module named 'theirs'", "theirs")
    it = result(ROW, taken)
    assert it.missing == ((THEIRS, "No module named 'theirs'"),)
    said = (
        "ours beside theirs: not there: theirs calls barrier (No module named 'theirs'); limit 0.8: not there"
    )
    assert str(it) == said


@pytest.mark.parametrize(
    ("place", "reason"), [((), "of all"), (("gang",), "of a way"), (("gang", "barrier"), "of an operation")]
)
def test_what_is_missing_is_told_of_a_subject_a_way_or_an_operation(
    place: tuple[str, ...], reason: str
) -> None:
    taken = Samples()
    taken.lack(reason, "ours", *place)
    assert taken.why_missing(OURS) == reason


def test_what_was_not_asked_for_is_not_measured() -> None:
    assert samples().why_missing(OURS) == "not measured at 4 ranks"


def test_a_row_is_reached_only_if_every_ratio_of_it_is_there() -> None:
    row = Row("beside two", 0.7, (Ratio(OURS, THEIRS), Ratio(OURS, OTHERS)))
    assert result(row, samples(ours=[1.0], theirs=[2.0])).verdict == "not there"
    assert result(row, samples(ours=[1.0], theirs=[2.0], others=[2.0])).verdict == "reached"


def test_a_row_is_not_reached_by_one_ratio_even_if_another_is_missing() -> None:
    row = Row("beside two", 0.7, (Ratio(OURS, THEIRS), Ratio(OURS, OTHERS)))
    it = result(row, samples(ours=[1.0], theirs=[1.0]))
    assert it.verdict == "not reached"
    assert "1.00 (ours gang barrier : theirs calls barrier)" in str(it)


def test_every_row_has_what_it_divides() -> None:
    assert len(ROWS) == 16
    measures = {each for row in ROWS for ratio in row.ratios for each in (ratio.over, ratio.under) if each}
    assert {measure.size for measure in measures} == {SIZE, FEW, MANY}
    taken = Samples()
    for measure in measures:
        taken.add(measure, [50e-6])
    assert [result(row, taken).verdict for row in ROWS].count("not there") == 0

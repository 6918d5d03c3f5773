"""Bundles that are none."""

import json

import pytest
from tests.support.jobs import late

from rankbridge_server.doctor.bundle import BadBundle, dump, load

GOOD = dump(late(2, [1]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cut off, or is none"),
        (GOOD[:-20], "cut off, or is none"),
        ("[1]", "not of the format"),
        ('{"format": "rankbridge evidence 99"}', "not of the format"),
        ("[" * 100_000, "cut off, or is none"),
        (GOOD.replace('"world_size":2', '"world_size":"2"'), "bundle.world_size must be int, and is str"),
        (GOOD.replace('"interval_s"', '"intervals"'), "a field that is not known: 'intervals'"),
        (GOOD.replace('"rank":1,', "", 1), "bundle.ranks[1]"),
    ],
)
def test_a_bundle_that_is_none_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(BadBundle, match=r".*") as caught:
        load(text)
    assert said in str(caught.value)


def test_integers_may_stand_for_times() -> None:
    data = json.loads(GOOD)
    data["at"] = 1000
    assert load(json.dumps(data)).at == 1000.0

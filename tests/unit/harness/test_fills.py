"""Elements made from a few numbers are the same everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from rankbridge import Tensor
from rankbridge._plan.dtypes import DTYPES
from rankbridge.harness.fills import draws, for_rank, made, pseudorandom
from rankbridge.harness.floats import decode, encode

# As docs/harness.md has them, for who writes the generator in another language.
VECTORS = {
    (7, 0): [0x63CBE1E459320DD7, 0x044C3CD7F43C661C, 0xE6984080BAB12A02],
    (7, 3): [0x4D35F9A78E125799, 0xED16FCFD08B420A4, 0x50621AAD44EC9DD5],
}


@pytest.mark.parametrize(("seed", "rank"), VECTORS)
def test_the_generator_gives_its_vectors(seed: int, rank: int) -> None:
    assert [int(it) for it in draws(seed, rank, 3)] == VECTORS[seed, rank]


def test_the_generator_is_splitmix64_as_written_down() -> None:
    def mix(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    for seed, rank in ((0, 0), (7, 3), (2**63 - 1, 255)):
        start = seed + rank * 0xD1342543DE82EF95
        written = [mix((start + (i + 1) * 0x9E3779B97F4A7C15) % 2**64) for i in range(5)]
        assert [int(it) for it in draws(seed, rank, 5)] == written


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_has_pseudorandom_elements_that_differ_by_rank(dtype: str) -> None:
    first, again, other = (pseudorandom(1, rank, dtype, (8, 8)) for rank in (0, 0, 1))
    assert first == again
    assert first != other
    if not dtype.startswith("float8"):
        # Each is exact: written as a number and read, it is the same.
        assert encode(decode(first), dtype) == first


def test_fills_say_what_elements_are() -> None:
    spec = {"dtype": "float32", "shape": [2, 2]}
    assert decode(made({**spec, "fill": "rank"}, 3, 0)).tolist() == [[3, 3], [3, 3]]
    assert decode(made({**spec, "fill": 1.5}, 3, 0)).tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert decode(made(spec, 3, 0)).tolist() == [[0, 0], [0, 0]]
    assert decode(made({**spec, "fill": {"arange": "rank"}}, 3, 0)).tolist() == [[3, 4], [5, 6]]
    by_rank = {"arange": {"start": "$rank", "step": 2}}
    assert decode(made({**spec, "fill": by_rank}, 1, 0)).tolist() == [[1, 3], [5, 7]]
    assert decode(made({**spec, "values": [[1, 2], [3, "$rank"]]}, 9, 0)).tolist() == [[1, 2], [3, 9]]
    assert made({"dtype": "int8", "shape": ["$rank", 3]}, 2, 0).shape == (2, 3)
    assert made({**spec, "fill": "random"}, 0, 5) == pseudorandom(5, 0, "float32", (2, 2))


def test_values_that_do_not_fill_the_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="3 values do not fill a tensor int32"):
        made({"dtype": "int32", "shape": [2], "values": [1, 2, 3]}, 0, 0)


def test_the_rank_is_put_in_the_place_of_its_name_alone() -> None:
    assert for_rank({"a": ["$rank", "$rank.", 1]}, 4) == {"a": [4, "$rank.", 1]}


def test_bfloat16_is_rounded_to_the_nearest_and_of_two_to_the_even_one() -> None:
    given = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-7, np.inf, np.nan, 3.4e38])
    rounded = decode(encode(given, "bfloat16"))
    assert rounded[:5].tolist() == [1.0, 1.0, 1 + 2**-6, -1 - 2**-7, np.inf]
    assert np.isnan(rounded[5])
    assert rounded[6] == np.inf


def test_complex32_are_pairs_of_halves() -> None:
    one = encode(np.array([1.5 - 2j]), "complex32")
    assert one == Tensor("complex32", [1], np.array([1.5, -2], "<f2"))
    assert decode(one).tolist() == [1.5 - 2j]

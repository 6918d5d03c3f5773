"""Lets a check that fails show both of its sides, as a test's own does."""

import pytest

pytest.register_assert_rewrite("tests.conformance.checks")

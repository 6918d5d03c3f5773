"""What MPI launchers say in the environment."""

from __future__ import annotations

import pytest

from rankbridge_server.cli.mpi import on_one_host


@pytest.mark.parametrize(
    ("environ", "one"),
    [
        ({}, False),
        ({"PMI_SIZE": "4"}, False),
        ({"MPI_LOCALNRANKS": "4"}, False),
        ({"PMI_SIZE": "4", "MPI_LOCALNRANKS": "4"}, True),
        ({"PMI_SIZE": "4", "MPI_LOCALNRANKS": "2"}, False),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, True),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, False),
    ],
)
def test_ranks_are_on_one_host_if_the_launcher_says_so(environ: dict[str, str], one: bool) -> None:
    assert on_one_host(environ) is one

"""``aconnect``: what it gives is awaited, entered, or run as a task."""

import asyncio

import pytest
from tests.unit.client.sidecars import SidecarGang

import rankbridge


def test_a_gang_is_entered_without_await_and_closed(sidecars: SidecarGang) -> None:
    async def main() -> None:
        async with rankbridge.aconnect(sidecars.endpoints()) as gang:
            assert len(gang) == 4
            await gang.barrier()
        with pytest.raises(rankbridge.RankBridgeError):
            await gang.barrier()

    asyncio.run(main())


def test_a_gang_is_awaited_and_is_a_task_as_before(sidecars: SidecarGang) -> None:
    async def main() -> None:
        async with await rankbridge.aconnect(sidecars.endpoints()) as gang:
            await gang.barrier()
        gang = await asyncio.create_task(rankbridge.aconnect(sidecars.endpoints()))
        await gang.close()
        gang, other = await asyncio.gather(*(rankbridge.aconnect(sidecars.endpoints()) for _ in range(2)))
        await gang.close()
        await other.close()

    asyncio.run(main())


def test_what_cannot_be_connected_raises_where_it_is_entered() -> None:
    async def main() -> None:
        async with rankbridge.aconnect([]):
            pytest.fail("entered")

    with pytest.raises(rankbridge.InvalidArgumentError):
        asyncio.run(main())


def test_a_task_that_is_cancelled_before_it_is_connected_ends_so(sidecars: SidecarGang) -> None:
    async def main() -> None:
        task = asyncio.create_task(rankbridge.aconnect(sidecars.endpoints()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_it_is_documented_as_what_it_calls() -> None:
    assert (rankbridge.aconnect.__doc__ or "").startswith("Connects to every rank of a gang.")

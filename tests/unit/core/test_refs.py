"""Refs, sessions and limits."""

from __future__ import annotations

import pytest

from rankbridge_server.core.dtype import Dtype
from rankbridge_server.core.errors import BridgeError, ErrorCode
from rankbridge_server.core.limits import MAX_SESSIONS, Limits
from rankbridge_server.core.refs import refs as core_refs
from rankbridge_server.core.refs.refs import Ref, RefStore
from rankbridge_server.core.refs.tensors import TensorSpec

SPEC = TensorSpec(Dtype.FLOAT32, (4,), "cpu")


def store(**limits: int) -> RefStore:
    return RefStore(Limits(**limits))


def keep(refs: RefStore, session_id: str = "", spec: TensorSpec = SPEC) -> Ref:
    with refs.reserved(session_id, spec) as slot:
        return slot.fill(object())


def code_of(error: pytest.ExceptionInfo[BridgeError]) -> ErrorCode:
    return error.value.failure.code


def test_a_ref_is_found_until_it_is_released() -> None:
    refs = store()
    ref = keep(refs)
    assert refs.find("", ref.id).ref == ref
    assert refs.release("", [ref.id]) == 1
    with pytest.raises(BridgeError) as error:
        refs.find("", ref.id)
    assert code_of(error) is ErrorCode.RELEASED_REF


@pytest.mark.parametrize("ref_id", ["nonsense", "0.00000000.1", "0..", ""])
def test_a_ref_that_never_was_is_unknown(ref_id: str) -> None:
    with pytest.raises(BridgeError) as error:
        store().find("", ref_id)
    assert code_of(error) is ErrorCode.UNKNOWN_REF


def test_a_ref_of_another_store_is_unknown_even_for_the_same_rank() -> None:
    with pytest.raises(BridgeError) as error:
        store().find("", keep(store()).id)
    assert code_of(error) is ErrorCode.UNKNOWN_REF


def test_a_ref_number_that_is_yet_to_come_is_unknown() -> None:
    refs = store()
    rank, nonce, number = keep(refs).id.split(".")
    with pytest.raises(BridgeError) as error:
        refs.find("", f"{rank}.{nonce}.{int(number) + 1}")
    assert code_of(error) is ErrorCode.UNKNOWN_REF


def test_a_ref_is_refused_to_another_session() -> None:
    refs = store()
    refs.open_session("a")
    refs.open_session("b")
    ref = keep(refs, "a")
    with pytest.raises(BridgeError) as error:
        refs.find("b", ref.id)
    assert code_of(error) is ErrorCode.WRONG_SESSION
    assert error.value.failure.expected == "session 'a'"


def test_release_frees_all_or_none() -> None:
    refs = store()
    ref = keep(refs)
    with pytest.raises(BridgeError):
        refs.release("", [ref.id, "0.00000000.9"])
    assert refs.find("", ref.id).ref == ref


def test_a_ref_named_twice_is_released_once() -> None:
    refs = store()
    ref = keep(refs)
    assert refs.release("", [ref.id, ref.id]) == 1
    assert [(usage.refs, usage.bytes) for usage in refs.usage()] == [(0, 0)]


def test_closing_a_session_frees_its_refs_and_nothing_else() -> None:
    refs = store()
    refs.open_session("a")
    mine, shared = keep(refs, "a"), keep(refs)
    assert refs.close_session("a") == 1
    assert refs.find("", shared.id).ref == shared
    with pytest.raises(BridgeError) as error:
        refs.find("a", mine.id)
    assert code_of(error) is ErrorCode.UNKNOWN_SESSION


def test_opening_an_open_session_changes_nothing() -> None:
    refs = store()
    refs.open_session("a")
    ref = keep(refs, "a")
    refs.open_session("a")
    assert refs.find("a", ref.id).ref == ref


def test_a_session_without_a_name_gets_one() -> None:
    refs = store()
    assert refs.open_session("") not in ("", refs.open_session(""))


def test_a_rank_has_so_many_sessions_and_no_more() -> None:
    refs = store()
    names = [refs.open_session("") for _ in range(MAX_SESSIONS)]
    with pytest.raises(BridgeError) as error:
        refs.open_session("one more")
    assert code_of(error) is ErrorCode.RESOURCE_EXHAUSTED
    # Those that are open stay so, and work.
    assert refs.open_session(names[0]) == names[0]
    keep(refs, names[0])
    refs.close_session(names[1])
    refs.open_session("one more")


def test_the_shared_session_cannot_be_closed() -> None:
    with pytest.raises(BridgeError) as error:
        store().close_session("")
    assert code_of(error) is ErrorCode.INVALID_ARGUMENT


def test_bytes_are_limited_exactly() -> None:
    refs = store(max_bytes=SPEC.nbytes * 2)
    first, _ = keep(refs), keep(refs)
    with pytest.raises(BridgeError) as error:
        refs.reserve("", SPEC)
    assert code_of(error) is ErrorCode.RESOURCE_EXHAUSTED
    refs.release("", [first.id])
    keep(refs)


def test_refs_are_limited_exactly() -> None:
    refs = store(max_refs=1)
    slot = refs.reserve("", SPEC)
    with pytest.raises(BridgeError) as error:
        refs.reserve("", SPEC)
    assert code_of(error) is ErrorCode.RESOURCE_EXHAUSTED
    slot.give_back()
    keep(refs)


def test_room_that_is_not_used_is_given_back_once() -> None:
    refs = store(max_bytes=SPEC.nbytes)
    with refs.reserved("", SPEC) as slot:
        slot.give_back()
    keep(refs)


def test_filling_a_slot_of_a_closed_session_keeps_nothing() -> None:
    refs = store(max_bytes=SPEC.nbytes)
    refs.open_session("a")
    slot = refs.reserve("a", SPEC)
    refs.close_session("a")
    with pytest.raises(BridgeError) as error:
        slot.fill(object())
    assert code_of(error) is ErrorCode.UNKNOWN_SESSION
    keep(refs)


def test_pages_go_on_where_they_stopped_even_when_the_last_ref_is_released() -> None:
    refs = store()
    ids = [keep(refs).id for _ in range(5)]
    assert [ref.id for ref in refs.page("", "", 2)] == ids[:2]
    refs.release("", [ids[1]])
    assert [ref.id for ref in refs.page("", ids[1], 9)] == ids[2:]


def test_pages_are_whole_and_in_order_whatever_is_released_between_them() -> None:
    refs = store()
    refs.open_session("other")
    ids = [keep(refs, "other" if at % 10 == 3 else "").id for at in range(1000)]
    shared = [ref_id for at, ref_id in enumerate(ids) if at % 10 != 3]
    for released in (shared[100:700], shared[:50], shared[-40:]):
        refs.release("", released)
        shared = [ref_id for ref_id in shared if ref_id not in released]
        for after in (-1, 0, 3, 7, 120, 555, 999):
            later = [ref_id for ref_id in shared if ids.index(ref_id) > after]
            page = refs.page("", ids[after] if after >= 0 else "", 30)
            assert [ref.id for ref in page] == later[:30]
    more = keep(refs)
    assert [ref.id for ref in refs.page("", shared[-1], 9)] == [more.id]
    assert [ref.id for ref in refs.page("other", "", 1000)] == ids[3::10]


def test_a_page_costs_what_is_on_it_and_not_what_is_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    refs = store()
    ids = [keep(refs).id for _ in range(10_000)]
    looked_at = 0
    number = core_refs._number

    def counting(ref_id: str) -> int:
        nonlocal looked_at
        looked_at += 1
        return number(ref_id)

    monkeypatch.setattr(core_refs, "_number", counting)
    assert [ref.id for ref in refs.page("", ids[9000], 100)] == ids[9001:9101]
    assert looked_at < 20


def test_released_ids_are_not_kept_for_long() -> None:
    refs = store()
    kept = [keep(refs) for _ in range(10)]
    for _ in range(1000):
        refs.release("", [keep(refs).id])
    assert len(refs._sessions[""].made) <= 2 * len(kept) + core_refs._FEW
    assert refs.page("", "", 1000) == kept


def test_limits_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        Limits(max_refs=0)

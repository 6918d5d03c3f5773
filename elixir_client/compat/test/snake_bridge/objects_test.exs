defmodule RankBridge.SnakeBridge.ObjectsTest do
  @moduledoc "What refs stand for, and how long."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Group, Id, Ref}
  alias RankBridge.SnakeBridge.Objects

  # Nothing is freed on ranks: there is no such gang.
  defp tensor, do: {:tensor, NoGang, %Ref{id: Id.uuid(), rank: 0}}
  defp group(name), do: {:group, NoGang, nil, %Group{name: name, ranks: [0]}}

  defp automatic(pid), do: "auto_#{:erlang.pid_to_list(pid)}_1700000000000"
  defp there?(id), do: match?({:ok, _object, _session}, Objects.fetch(id))

  # A process's end is told to others in its own time; each turn waits for an answer of who has to hear of it.
  defp until_gone(id) do
    _state = :sys.get_state(Objects)
    if there?(id), do: until_gone(id), else: :ok
  end

  test "an object is known by its id until it is released" do
    object = group("a")
    {id, "s1"} = Objects.put(object, "s1")
    assert Objects.ours?(id) and not Objects.ours?("other") and not Objects.ours?(nil)
    assert Objects.of_ref(%{"__type__" => "ref", "id" => id}) == {:ok, object}
    assert Objects.of_ref(%SnakeBridge.Ref{id: id}) == {:ok, object}
    assert Objects.replace(id, group("b")) == :ok
    assert Objects.fetch(id) == {:ok, group("b"), "s1"}
    assert Objects.release(id) == {:ok, true}
    assert Objects.release(id) == {:ok, false}
    assert {:error, %Error{reason: :released_ref}} = Objects.of_ref(%{"id" => id})
    assert {:error, %Error{reason: :unknown_ref}} = Objects.of_ref(%{"id" => "of Snakepit"})
    assert {:error, %Error{reason: :unknown_ref}} = Objects.of_ref(:no_ref)
  end

  test "a tensor has one id, and stays in its session" do
    object = tensor()
    assert {id, "s2"} = Objects.put(object, "s2")
    assert Objects.put(object, "s3") == {id, "s2"}
    assert Objects.release_session("s3") == {:ok, 0}
    assert there?(id)
    assert Objects.release(id) == {:ok, true}
    assert {other, "s3"} = Objects.put(object, "s3")
    assert other != id
    assert Objects.release_session("s3") == {:ok, 1}
  end

  test "a session is released with all that it has" do
    session = Id.uuid()
    ids = for name <- ["a", "b", "c"], do: elem(Objects.put(group(name), session), 0)
    {other, _session} = Objects.put(group("d"), Id.uuid())
    assert Objects.release(hd(ids)) == {:ok, true}
    assert Objects.release_session(session) == {:ok, 2}
    assert Enum.map(ids, &there?/1) == [false, false, false]
    assert there?(other)
    assert Objects.release_session(session) == {:ok, 0}
  end

  test "the automatic session of a process ends with it" do
    test = self()

    {pid, monitor} =
      spawn_monitor(fn ->
        {id, _session} = Objects.put(group("a"), automatic(self()))
        send(test, {:made, id})
        receive do: (:end -> :ok)
      end)

    assert_receive {:made, id}, 10_000
    assert there?(id)
    send(pid, :end)
    assert_receive {:DOWN, ^monitor, :process, ^pid, :normal}, 10_000
    until_gone(id)
  end

  test "what a task has made lives on with its caller, even if its session is to be released" do
    task =
      Task.async(fn ->
        session = automatic(self())
        {id, ^session} = Objects.put(group("a"), session)
        {session, id}
      end)

    monitor = Process.monitor(task.pid)
    {session, id} = Task.await(task)
    assert_receive {:DOWN, ^monitor, :process, _pid, _reason}, 10_000
    assert Objects.release_session(session) == {:ok, 0}
    assert there?(id)
  end

  test "and ends with the caller" do
    test = self()

    {pid, monitor} =
      spawn_monitor(fn ->
        id = Task.await(Task.async(fn -> elem(Objects.put(group("a"), automatic(self())), 0) end))

        send(test, {:made, id})
        receive do: (:end -> :ok)
      end)

    assert_receive {:made, id}, 10_000
    assert there?(id)
    send(pid, :end)
    assert_receive {:DOWN, ^monitor, :process, ^pid, :normal}, 10_000
    until_gone(id)
  end

  test "a living process releases its own automatic session" do
    {id, session} = Objects.put(group("a"), automatic(self()))
    assert Objects.release_session(session) == {:ok, 1}
    refute there?(id)
  end

  test "a session that only looks like an automatic one is none" do
    {id, session} = Objects.put(group("a"), "auto_<0.999999999999.0>_1")
    assert there?(id)
    assert Objects.release_session(session) == {:ok, 1}
  end
end

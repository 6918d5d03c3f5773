defmodule RankBridge.Test.Chaos.Forms do
  @moduledoc "Refs and errors as the lines between `make chaos` and its Elixir controller have them."

  alias RankBridge.{Error, Ref}

  @type json :: %{String.t() => term()}

  @doc "A ref."
  @spec ref(Ref.t()) :: json()
  def ref(%Ref{} = ref) do
    %{
      "id" => ref.id,
      "rank" => ref.rank,
      "session_id" => ref.session_id,
      "dtype" => "#{ref.dtype}",
      "shape" => ref.shape,
      "device" => ref.device
    }
  end

  @doc "The ref of what `ref/1` gave."
  @spec to_ref(json()) :: Ref.t()
  def to_ref(form) do
    %Ref{
      id: form["id"],
      rank: form["rank"],
      session_id: form["session_id"],
      dtype: String.to_atom(form["dtype"]),
      shape: form["shape"],
      device: form["device"]
    }
  end

  @doc "An error; `outcomes` of a call to several ranks are left out."
  @spec error(Error.t()) :: json()
  def error(%Error{} = error) do
    %{
      "code" => error.reason |> Atom.to_string() |> String.upcase(),
      "message" => error.message,
      "indefinite" => error.indefinite,
      "phase" => "#{error.phase}",
      "rank" => error.rank,
      "group" => error.group,
      "operation" => error.operation,
      "operation_id" => error.operation_id,
      "generation" => error.generation,
      "expected" => error.expected,
      "got" => error.got,
      "ranks" => Enum.map(error.ranks, &detail/1)
    }
  end

  defp detail(detail) do
    %{
      "rank" => detail.rank,
      "rank_in_group" => detail.rank_in_group,
      "state" => "#{detail.state}",
      "detail" => detail.detail
    }
  end
end

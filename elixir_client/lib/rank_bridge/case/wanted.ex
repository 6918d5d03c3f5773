defmodule RankBridge.Case.Wanted do
  @moduledoc false
  # The gang that a test wants.

  @defaults [size: 4, backend: :fake, timeout: 10_000, load: [], arguments: [], command: nil]

  @enforce_keys Keyword.keys(@defaults)
  defstruct Keyword.keys(@defaults)

  @type t :: %__MODULE__{
          size: pos_integer(),
          backend: atom(),
          timeout: pos_integer(),
          load: String.t() | [String.t()],
          arguments: [String.t()],
          command: String.t() | nil
        }

  @doc "The names of its options."
  @spec names() :: [atom()]
  def names, do: Keyword.keys(@defaults)

  @doc "What a module wants, and one of its tests. Raises `ArgumentError` for options of other names."
  @spec read(keyword(), term()) :: t()
  def read(of_module, of_test) do
    of_test = if Keyword.keyword?(of_test), do: of_test, else: []
    struct!(__MODULE__, Keyword.validate!(Keyword.merge(of_module, of_test), @defaults))
  end

  @doc "The options of its ranks: tests that have equal ones use the same ranks."
  @spec options(t()) :: keyword()
  def options(wanted) do
    # What is lost is formed again when the test has ended, or by the test.
    replacing = if wanted.backend in [:gloo, :nccl], do: ["--on-rank-exit", "replace"], else: []
    arguments = replacing ++ wanted.arguments

    [size: wanted.size, backend: wanted.backend, load: wanted.load, command: wanted.command] ++
      [arguments: arguments, session: false, on_rank_lost: :leave]
  end

  defimpl String.Chars do
    def to_string(wanted), do: "#{wanted.size} ranks on #{wanted.backend}"
  end
end

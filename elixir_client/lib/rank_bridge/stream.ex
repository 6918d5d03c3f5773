defmodule RankBridge.Stream do
  @moduledoc false
  # The name of `RankBridge.CallStream` in earlier releases. The release after the one that says so removes it.

  alias RankBridge.CallStream

  for {name, arities} <- [
        open: 1..2,
        open!: 1..2,
        push: 2..4,
        push!: 2..4,
        await: 1..1,
        await!: 1..1,
        withdraw: 1..1,
        close: 1..1
      ],
      arity <- arities do
    arguments = Macro.generate_arguments(arity, __MODULE__)

    @doc false
    @deprecated "use RankBridge.CallStream.#{name}/#{arity}"
    def unquote(name)(unquote_splicing(arguments)),
      do: CallStream.unquote(name)(unquote_splicing(arguments))
  end
end

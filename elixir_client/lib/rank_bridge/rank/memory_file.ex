defmodule RankBridge.Rank.MemoryFile do
  @moduledoc false
  # Reading and writing memory that a rank shares, with plain calls on its file.

  # One call to the system moves less than 2 GiB.
  @piece 1_073_741_824

  @doc "Whether the file is the one that the rank made: the nonce lies from byte `room` on, and is its end."
  @spec verify(String.t(), pos_integer(), binary()) :: :ok | {:error, String.t()}
  def verify(path, room, nonce) do
    opened(path, [:read], fn file ->
      case nonce != "" and :file.pread(file, room, byte_size(nonce) + 1) do
        {:ok, ^nonce} -> :ok
        {:error, reason} -> {:error, reason}
        _other -> {:error, "it is another file here"}
      end
    end)
  end

  @doc "Writes data from the first byte on."
  @spec write(String.t(), iodata()) :: :ok | {:error, String.t()}
  def write(path, data), do: opened(path, [:read, :write], &:file.pwrite(&1, 0, data))

  @doc "Reads so many bytes from the first on."
  @spec read(String.t(), non_neg_integer()) :: {:ok, binary()} | {:error, String.t()}
  def read(path, bytes), do: opened(path, [:read], &read(&1, 0, bytes, []))

  defp read(_file, _at, 0, [whole]), do: {:ok, whole}
  defp read(_file, _at, 0, pieces), do: {:ok, pieces |> Enum.reverse() |> IO.iodata_to_binary()}

  defp read(file, at, left, pieces) do
    case :file.pread(file, at, min(left, @piece)) do
      {:ok, piece} -> read(file, at + byte_size(piece), left - byte_size(piece), [piece | pieces])
      :eof -> {:error, "it is too short"}
      error -> error
    end
  end

  defp opened(path, modes, fun) do
    with {:ok, file} <- :file.open(path, [:raw, :binary | modes]) do
      try do
        fun.(file)
      after
        _ = :file.close(file)
      end
    end
    |> case do
      {:error, reason} when is_atom(reason) ->
        {:error, "#{path}: #{:file.format_error(reason)}"}

      {:error, message} ->
        {:error, "#{path}: #{message}"}

      fine ->
        fine
    end
  end
end

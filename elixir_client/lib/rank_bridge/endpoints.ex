defmodule RankBridge.Endpoints do
  @moduledoc false
  # Where the ranks of a gang are: for each rank, in rank order, one gRPC target or several that lead to it.
  #
  # A file of endpoints is what `rankbridge up --endpoints-file` writes:
  # `{"ranks": [{"rank": 0, "endpoints": ["unix:/run/0.sock", "127.0.0.1:50051"]}, ...]}`, and in `"tokens"` what shows the
  # ranks that the gang is the caller's.

  alias RankBridge.{Error, JSON, Token}

  @type targets :: String.t() | [String.t()]

  @doc "The targets of each rank in a file. The error says what is wrong with it."
  @spec read(Path.t()) :: {:ok, [[String.t()]]} | {:error, Error.t()}
  def read(path), do: with({:ok, targets, _token} <- read_with_token(path), do: {:ok, targets})

  @doc "The same, and the file's token, or nil."
  @spec read_with_token(Path.t()) :: {:ok, [[String.t()]], Token.t() | nil} | {:error, Error.t()}
  def read_with_token(path) do
    with {:ok, text} <- read_file(path),
         {:ok, %{"ranks" => ranks} = content} when is_list(ranks) <- JSON.decode(text),
         true <- Enum.all?(ranks, &is_map/1),
         sorted = Enum.sort_by(ranks, & &1["rank"]),
         true <- Enum.map(sorted, & &1["rank"]) == Enum.to_list(0..(length(ranks) - 1)//1) do
      with {:ok, lists} <- check(Enum.map(sorted, & &1["endpoints"])),
           do: {:ok, lists, Token.of_roles(content["tokens"])}
    else
      {:error, error} -> {:error, error}
      _other -> refuse("#{path} is no file of endpoints")
    end
  end

  defp read_file(path) do
    with {:error, reason} <- File.read(path), do: refuse("#{path}: #{:file.format_error(reason)}")
  end

  @doc "Checks the targets of each rank, and makes a list of each."
  @spec check([targets()]) :: {:ok, [[String.t()]]} | {:error, Error.t()}
  def check([_first | _rest] = ranks) do
    lists = Enum.map(ranks, &List.wrap/1)

    bad =
      Enum.find_index(lists, &(&1 == [] or not Enum.all?(&1, fn target -> is_binary(target) end)))

    if bad, do: refuse("rank #{bad} has no endpoint"), else: {:ok, lists}
  end

  def check(_other), do: refuse("no endpoints were given")

  @doc """
  The target to use: a unix socket that exists on this host, else the first that is none. With `secure?`, for TLS,
  which ranks speak on TCP, a unix socket is taken only where there is nothing else.
  """
  @spec choose([String.t(), ...], boolean()) :: String.t()
  def choose(targets, secure? \\ false) do
    here = if secure?, do: nil, else: Enum.find(targets, &here?/1)
    here || Enum.find(targets, &(not unix?(&1))) || hd(targets)
  end

  defp unix?(target), do: String.starts_with?(target, "unix:")

  defp here?("unix://" <> path), do: File.exists?(path)
  defp here?("unix:" <> path), do: File.exists?(path)
  defp here?(_other), do: false

  defp refuse(message), do: {:error, Error.refusal(:invalid_argument, message)}
end

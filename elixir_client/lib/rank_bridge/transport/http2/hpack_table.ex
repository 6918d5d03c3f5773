defmodule RankBridge.Transport.HTTP2.HPACKTable do
  @moduledoc false
  # The index of HPACK (RFC 7541, section 2.3): the static table of appendix A, then the dynamic table.
  #
  # Sizes are counted as RFC 7541 counts them: name, value, and 32 bytes for each entry.

  @static [
    {":authority", ""},
    {":method", "GET"},
    {":method", "POST"},
    {":path", "/"},
    {":path", "/index.html"},
    {":scheme", "http"},
    {":scheme", "https"},
    {":status", "200"},
    {":status", "204"},
    {":status", "206"},
    {":status", "304"},
    {":status", "400"},
    {":status", "404"},
    {":status", "500"},
    {"accept-charset", ""},
    {"accept-encoding", "gzip, deflate"},
    {"accept-language", ""},
    {"accept-ranges", ""},
    {"accept", ""},
    {"access-control-allow-origin", ""},
    {"age", ""},
    {"allow", ""},
    {"authorization", ""},
    {"cache-control", ""},
    {"content-disposition", ""},
    {"content-encoding", ""},
    {"content-language", ""},
    {"content-length", ""},
    {"content-location", ""},
    {"content-range", ""},
    {"content-type", ""},
    {"cookie", ""},
    {"date", ""},
    {"etag", ""},
    {"expect", ""},
    {"expires", ""},
    {"from", ""},
    {"host", ""},
    {"if-match", ""},
    {"if-modified-since", ""},
    {"if-none-match", ""},
    {"if-range", ""},
    {"if-unmodified-since", ""},
    {"last-modified", ""},
    {"link", ""},
    {"location", ""},
    {"max-forwards", ""},
    {"proxy-authenticate", ""},
    {"proxy-authorization", ""},
    {"range", ""},
    {"referer", ""},
    {"refresh", ""},
    {"retry-after", ""},
    {"server", ""},
    {"set-cookie", ""},
    {"strict-transport-security", ""},
    {"transfer-encoding", ""},
    {"user-agent", ""},
    {"vary", ""},
    {"via", ""},
    {"www-authenticate", ""}
  ]

  @static_size length(@static)
  @static_tuple List.to_tuple(@static)
  @by_field @static |> Enum.with_index(1) |> Map.new()
  @by_name @static
           |> Enum.with_index(1)
           |> Enum.reverse()
           |> Map.new(fn {{name, _}, i} -> {name, i} end)

  defstruct entries: %{}, newest: 0, oldest: 1, size: 0, max_size: 4096, limit: 4096

  @typedoc "The dynamic table. `limit` is what our SETTINGS allow, `max_size` what the peer's encoder chose."
  @type t :: %__MODULE__{
          entries: %{pos_integer() => field()},
          newest: non_neg_integer(),
          oldest: pos_integer(),
          size: non_neg_integer(),
          max_size: non_neg_integer(),
          limit: non_neg_integer()
        }

  @type field :: {name :: String.t(), value :: String.t()}

  @doc "An empty dynamic table of at most `limit` bytes."
  @spec new(non_neg_integer()) :: t()
  def new(limit \\ 4096), do: %__MODULE__{max_size: limit, limit: limit}

  @doc "The static index of a whole field, or of its name alone, if there is one."
  @spec static_index(String.t(), String.t()) ::
          {:field, pos_integer()} | {:name, pos_integer()} | nil
  def static_index(name, value) do
    case {@by_field, @by_name} do
      {%{{^name, ^value} => index}, _} -> {:field, index}
      {_, %{^name => index}} -> {:name, index}
      _ -> nil
    end
  end

  @doc "The field at an index, counted through both tables from 1."
  @spec fetch(t(), non_neg_integer()) :: {:ok, field()} | :error
  def fetch(_table, index) when index in 1..@static_size,
    do: {:ok, elem(@static_tuple, index - 1)}

  def fetch(table, index), do: Map.fetch(table.entries, table.newest - (index - @static_size - 1))

  @doc "Adds a field, and drops the oldest until all fit. A field larger than the table empties it."
  @spec add(t(), field()) :: t()
  def add(table, {name, value} = field) do
    size = byte_size(name) + byte_size(value) + 32
    table = evict(table, table.max_size - size)

    if size > table.max_size do
      table
    else
      newest = table.newest + 1

      %{
        table
        | entries: Map.put(table.entries, newest, field),
          newest: newest,
          size: table.size + size
      }
    end
  end

  @doc "The peer's dynamic table size update. `:error` above the limit of our SETTINGS."
  @spec resize(t(), non_neg_integer()) :: {:ok, t()} | :error
  def resize(%{limit: limit}, max_size) when max_size > limit, do: :error
  def resize(table, max_size), do: {:ok, evict(%{table | max_size: max_size}, max_size)}

  defp evict(%{size: size} = table, max_size) when size <= max_size or size == 0, do: table

  defp evict(%{oldest: oldest} = table, max_size) do
    {{name, value}, entries} = Map.pop!(table.entries, oldest)
    size = table.size - byte_size(name) - byte_size(value) - 32
    evict(%{table | entries: entries, oldest: oldest + 1, size: size}, max_size)
  end
end

# A stand-in for Phoenix.LiveView and Phoenix.LiveDashboard, as far as the library, its guide and its tests use them.
# Written from the documentation of Phoenix.LiveView 1.0 (`mount/3`, `handle_info/2`, `render/1`, `assign/2` and `/3`,
# `connected?/1`, `~H`) and of Phoenix.LiveDashboard 0.8 (`Phoenix.LiveDashboard.PageBuilder`: `init/1`, `menu_link/2`,
# `mount/3`, `handle_info/2`, `handle_refresh/1`, `render/1`; the components `card/1` and `live_table/1`, whose
# `:row_fetcher` gets the params and the node, and gives the rows and their total). Loaded by the tests that need it.
#
# `~H` is EEx with attributes in braces, components and slots. It is no HTML parser: expressions in tags hold no `>` and few
# braces, and nothing is escaped.
defmodule Phoenix.LiveView.Socket do
  @moduledoc "A stand-in: assigns, and whether the page has its connection."
  defstruct assigns: %{__changed__: %{}}, connected?: false
end

defmodule Phoenix.Component do
  @moduledoc "A stand-in: assigns and templates."
  alias Phoenix.LiveView.Socket

  defmacro __using__(_opts), do: quote(do: import(Phoenix.Component))

  def assign(%Socket{} = socket, key, value), do: assign(socket, [{key, value}])

  def assign(%Socket{} = socket, assigns),
    do: %{socket | assigns: Enum.into(assigns, socket.assigns)}

  @doc "Runs a component with its assigns; without slots they have no inner block."
  def component(component, assigns, inner),
    do: assigns |> Map.merge(%{__changed__: nil, inner_block: inner}) |> component.()

  defmacro sigil_H({:<<>>, _meta, [template]}, []) do
    unless Macro.Env.has_var?(__CALLER__, {:assigns, nil}),
      do: raise("~H requires a variable named \"assigns\" to exist")

    template |> tags() |> EEx.compile_string(engine: EEx.SmartEngine)
  end

  defp tags(template) do
    template =
      Regex.replace(
        ~r/<\.(\w+)((?:\s+[\w:-]+=(?:"[^"]*"|\{[^}]*\}))*)\s*(?:\/>|>(.*?)<\/\.\1>)/s,
        template,
        fn
          _all, name, attributes, inner ->
            slot = ~r/<:(\w+)((?:\s+[\w:-]+=(?:"[^"]*"|\{[^}]*\}))*)\s*\/>/s

            slots =
              slot
              |> Regex.scan(inner)
              |> Enum.group_by(&Enum.at(&1, 1), &"%{#{assigns(Enum.at(&1, 2))}}")
              |> Enum.map(fn {name, of} -> "#{name}: [#{Enum.join(of, ", ")}]" end)

            given = Enum.join(Enum.reject([assigns(attributes) | slots], &(&1 == "")), ", ")
            inner = slot |> Regex.replace(inner, "") |> String.trim()

            "<%= Phoenix.Component.component(&#{name}/1, %{#{given}}, fn -> %>#{inner}<% end) %>"
        end
      )

    # Of plain tags.
    Regex.replace(~r/ ([\w-]+)=\{((?:[^{}]|\{[^{}]*\})*)\}/, template, ~S( \1="<%= \2 %>"))
  end

  defp assigns(attributes) do
    ~r/([\w:-]+)=(?:("[^"]*")|\{([^}]*)\})/
    |> Regex.scan(attributes)
    |> Enum.map_join(", ", fn [_all, name | value] -> "#{name}: #{List.last(value)}" end)
  end
end

defmodule Phoenix.LiveView do
  @moduledoc "A stand-in: the behaviour."
  @callback mount(map(), map(), struct()) :: {:ok, struct()}
  @callback render(map()) :: term()
  @callback handle_info(term(), struct()) :: {:noreply, struct()}
  @optional_callbacks mount: 3, handle_info: 2

  defmacro __using__(_opts) do
    quote do
      @behaviour Phoenix.LiveView
      import Phoenix.Component
      import Phoenix.LiveView
    end
  end

  def connected?(socket), do: socket.connected?
end

defmodule Phoenix.LiveDashboard.PageBuilder do
  @moduledoc "A stand-in: the behaviour of a page, and two components."
  @callback init(term()) :: {:ok, map()}
  @callback menu_link(map(), map()) :: {:ok, String.t()}
  @callback mount(map(), map(), struct()) :: {:ok, struct()}
  @callback render(map()) :: term()
  @callback handle_info(term(), struct()) :: {:noreply, struct()}
  @callback handle_refresh(struct()) :: {:noreply, struct()}
  @optional_callbacks mount: 3, handle_info: 2, handle_refresh: 1

  defstruct [:node, :params, :route]

  defmacro __using__(_opts) do
    quote do
      @behaviour Phoenix.LiveDashboard.PageBuilder
      import Phoenix.Component
      import Phoenix.LiveView, only: [connected?: 1]
      import Phoenix.LiveDashboard.PageBuilder
      @impl true
      def init(opts), do: {:ok, opts}
      defoverridable init: 1
    end
  end

  def card(%{inner_block: inner} = assigns),
    do: "[card #{assigns[:title]}/#{assigns[:inner_title]}: #{inner.()}]"

  def live_table(
        %{id: _, dom_id: _, page: page, title: title, row_fetcher: fetch, col: columns} = table
      ) do
    true = Enum.any?(columns, & &1[:sortable])
    sort_by = Enum.find(columns, & &1[:sortable])
    params = %{search: nil, sort_by: sort_by.field, sort_dir: sort_by.sortable, limit: 50}
    {rows, total} = fetch.(params, page.node)
    head = Enum.map_join(columns, "|", &(&1[:header] || to_string(&1.field)))
    body = for row <- rows, do: "\n" <> Enum.map_join(columns, "|", &to_string(row[&1.field]))
    "[table #{title} (#{total} #{table[:rows_name]}): #{head}#{body}]"
  end
end

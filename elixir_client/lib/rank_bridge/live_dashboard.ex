if Code.ensure_loaded?(Phoenix.LiveDashboard.PageBuilder) do
  defmodule RankBridge.LiveDashboard do
    @moduledoc """
    A page of Phoenix.LiveDashboard with a gang: its ranks, its generation, pending operations, whom others wait for, and
    its last events. It is there where Phoenix.LiveDashboard is.

        live_dashboard "/dashboard",
          additional_pages: [gang: {RankBridge.LiveDashboard, gang: MyGang}]

    Of several gangs, each has a page and a name of a route of its own. Option `:gang`: the gang's name.

    Events come by themselves. The ranks are asked when the dashboard refreshes.
    """

    use Phoenix.LiveDashboard.PageBuilder

    alias RankBridge.Gang
    alias RankBridge.Gang.Overview

    @impl true
    @doc false
    def init(opts), do: {:ok, %{gang: Keyword.fetch!(opts, :gang)}}

    @impl true
    @doc false
    def menu_link(%{gang: gang}, _capabilities), do: {:ok, "Gang #{inspect(gang)}"}

    @impl true
    @doc false
    def mount(_params, %{gang: gang}, socket) do
      if connected?(socket), do: :ok = Gang.subscribe(gang)
      {:ok, assign(socket, overview: gang |> Overview.new() |> Overview.refresh())}
    end

    @impl true
    @doc false
    def handle_info({:rank_bridge, _gang, event}, socket),
      do: {:noreply, update(socket, &Overview.add(&1, event))}

    def handle_info(_other, socket), do: {:noreply, socket}

    @impl true
    @doc false
    def handle_refresh(socket), do: {:noreply, update(socket, &Overview.refresh/1)}

    defp update(socket, fun), do: assign(socket, overview: fun.(socket.assigns.overview))

    @impl true
    @doc false
    def render(assigns) do
      ~H"""
      <div class="row">
        <div class="col-sm-4">
          <.card title="Gang" inner_title="Generation"><%= @overview.generation %></.card>
        </div>
        <div class="col-sm-4">
          <.card inner_title="Pending operations"><%= Overview.pending(@overview) %></.card>
        </div>
        <div class="col-sm-4">
          <.card inner_title="Operations that wait for stragglers"><%= length(@overview.stragglers) %></.card>
        </div>
      </div>
      <%= if @overview.error do %>
        <p><%= @overview.error.message %></p>
      <% end %>
      <.live_table id="rank-bridge-ranks" dom_id="rank-bridge-ranks" page={@page} title="Ranks" rows_name="ranks" row_fetcher={rows(@overview)}>
        <:col field={:rank} header="Rank" sortable={:asc} />
        <:col field={:host} header="Host" />
        <:col field={:pid} header="Pid" />
        <:col field={:backend} header="Backend" />
        <:col field={:generation} header="Generation" sortable={:desc} />
        <:col field={:state} header="State" />
        <:col field={:pending} header="Pending" sortable={:desc} />
        <:col field={:note} header="Note" />
      </.live_table>
      <h5 class="card-title">Stragglers</h5>
      <ul>
        <%= for straggler <- @overview.stragglers do %>
          <li><%= Overview.describe(straggler) %></li>
        <% end %>
      </ul>
      <h5 class="card-title">Last events</h5>
      <ul>
        <%= for {time, event} <- @overview.events do %>
          <li><%= Calendar.strftime(time, "%H:%M:%S") %> <%= Overview.describe(event) %></li>
        <% end %>
      </ul>
      """
    end

    # What the table shows: searched, sorted, and not more than it asks for.
    defp rows(overview) do
      rows = Overview.rows(overview)

      fn %{search: search, sort_by: field, sort_dir: direction, limit: limit}, _node ->
        found = if search in [nil, ""], do: rows, else: Enum.filter(rows, &found?(&1, search))

        {found |> Enum.sort_by(&Map.fetch!(&1, field), direction) |> Enum.take(limit),
         length(found)}
      end
    end

    defp found?(row, search) do
      search = String.downcase(search)

      Enum.any?(row, fn {_field, value} ->
        value |> to_string() |> String.downcase() |> String.contains?(search)
      end)
    end
  end
end

defmodule Telemetry.Metrics do
  @moduledoc """
  A stand-in for the library of this name, written from its documentation, as far as this client uses it: `counter/2` and
  `summary/2` with their options. Not compiled with the tests, so that they can do without.
  """

  for kind <- [Counter, Summary] do
    defmodule Module.concat(__MODULE__, kind) do
      @moduledoc "A metric of this kind, as a reporter gets it."
      defstruct [:name, :event_name, :measurement, :tags, :tag_values, :keep] ++
                  [:description, :unit, :reporter_options]
    end
  end

  @options [:event_name, :measurement, :tags, :tag_values, :keep, :drop] ++
             [:description, :unit, :reporter_options]

  @doc "Counts events."
  def counter(name, options \\ []), do: struct!(Telemetry.Metrics.Counter, fields(name, options))

  @doc "Statistics of a measurement."
  def summary(name, options \\ []), do: struct!(Telemetry.Metrics.Summary, fields(name, options))

  # The last part of the name is the measurement, those before it the event, unless options say otherwise.
  defp fields(name, options) do
    [] = Keyword.keys(options) -- @options
    parts = for part <- String.split(name, "."), do: String.to_atom(part)
    {event, [measurement]} = Enum.split(parts, -1)
    {unit, measurement} = unit(options[:unit] || :unit, options[:measurement] || measurement)

    [
      name: parts,
      event_name: options[:event_name] || event,
      measurement: measurement,
      tags: options[:tags] || [],
      tag_values: options[:tag_values] || (& &1),
      keep: options[:keep],
      description: options[:description],
      unit: unit,
      reporter_options: options[:reporter_options] || []
    ]
  end

  # A pair of units converts the measurement.
  defp unit({from, to}, measurement) do
    ratio = System.convert_time_unit(1_000_000_000, from, to) / 1_000_000_000
    {to, fn measurements -> measurements[measurement] * ratio end}
  end

  defp unit(unit, measurement), do: {unit, measurement}
end

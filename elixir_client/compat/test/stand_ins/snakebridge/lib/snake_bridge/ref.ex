defmodule SnakeBridge.Ref do
  @moduledoc "Stands in for the struct of that name: an object in Python."

  defstruct [:id, :session_id, :pool_name, :python_module, :library, :type_name, schema: 1]

  @type t :: %__MODULE__{}

  @doc "As it travels: all but pool and type."
  @spec wire(t()) :: map()
  def wire(%__MODULE__{} = ref) do
    %{
      "__type__" => "ref",
      "__schema__" => 1,
      "id" => ref.id,
      "session_id" => ref.session_id,
      "python_module" => ref.python_module,
      "library" => ref.library
    }
  end
end

defmodule SnakeBridge.StreamRef do
  @moduledoc "Stands in for the struct of that name: an iterator in Python."

  defstruct [:id, :session_id, :python_module, :library]

  @type t :: %__MODULE__{}
end

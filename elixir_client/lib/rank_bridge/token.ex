defmodule RankBridge.Token do
  @moduledoc """
  What shows ranks at TCP endpoints that a program may call them.

  It is a function that gives the text, so that no state, report or log of a process prints the text.
  """

  alias RankBridge.{Error, JSON}

  @type t :: (() -> String.t())

  @variable "RANKBRIDGE_TOKEN_FILE"

  @doc "A token of a text. A token stays as it is; nil: there is none."
  @spec new(String.t() | t() | nil) :: t() | nil
  def new(text) when is_binary(text), do: fn -> text end
  def new(token) when is_function(token, 0) or token == nil, do: token

  @doc "The token that allows most, of a map of texts by role. Nil: there is none."
  @spec of_roles(map() | nil) :: t() | nil
  def of_roles(%{} = texts), do: new(texts["own"] || texts["drive"] || texts["observe"])
  def of_roles(_none), do: nil

  @doc "The token in the file that `RANKBRIDGE_TOKEN_FILE` names: alone, or as `rankbridge tokens` writes it."
  @spec in_environment() :: {:ok, t() | nil} | {:error, Error.t()}
  def in_environment do
    case System.get_env(@variable) do
      nil -> {:ok, nil}
      path -> in_file(path)
    end
  end

  defp in_file(path) do
    case File.read(path) do
      {:ok, text} -> of_text(String.trim(text), path)
      {:error, reason} -> refuse("#{path}: #{:file.format_error(reason)}")
    end
  end

  defp of_text(text, path) do
    token =
      case JSON.decode(text) do
        {:ok, %{} = texts} -> of_roles(texts)
        # A header has no more than one word.
        _other -> if text =~ ~r/\A[!-~]+\z/, do: new(text)
      end

    if token,
      do: {:ok, token},
      else: refuse("there is no token in #{path}, which #{@variable} names")
  end

  defp refuse(message), do: {:error, Error.refusal(:invalid_argument, message)}
end

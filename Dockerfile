# Two images of one project: `rank` hosts one rank of a gang, `controller` drives the gang from Elixir.
#
# torch's default file for Linux brings CUDA packages (several GB). For a small image, name an index of CPU builds
# (PyTorch's installation page does):
#   docker compose build --build-arg PIP_EXTRA_INDEX_URL=ADDRESS

FROM python:3.11-slim AS rank
ARG PIP_EXTRA_INDEX_URL=""
ENV PYTHONUNBUFFERED=1
WORKDIR /opt/rankbridge
# What changes seldom comes first, so that a change of the code does not install torch again.
COPY constraints.txt ./
RUN pip install --no-cache-dir --constraint constraints.txt torch numpy grpcio grpcio-health-checking grpcio-reflection
COPY pyproject.toml README.md LICENSE ./
COPY proto ./proto
COPY pyclient ./pyclient
COPY server ./server
RUN pip install --no-cache-dir --constraint constraints.txt ".[server]" \
 && useradd --system --create-home rankbridge
USER rankbridge
EXPOSE 50051
ENTRYPOINT ["rankbridge"]
CMD ["--help"]

FROM debian:bookworm-slim AS controller
ENV LC_ALL=C.UTF-8 ELIXIR_ERL_OPTIONS="+fnu" MIX_ENV=prod
RUN apt-get update \
 && apt-get install --yes --no-install-recommends elixir erlang-ssl \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --create-home rankbridge
WORKDIR /opt/rankbridge/elixir_client
COPY --chown=rankbridge elixir_client ./
RUN chown rankbridge .
USER rankbridge
RUN mix compile
ENTRYPOINT ["mix", "run", "--no-compile"]
CMD ["demo/demo.exs", "/etc/rankbridge/endpoints.json"]

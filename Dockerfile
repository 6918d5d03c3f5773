# Two images of one project: `rank` hosts one rank of a gang, `controller` drives the gang from Elixir.
#
# torch's default file for Linux brings CUDA packages (several GB). For a small image, name an index of CPU builds
# (PyTorch's installation page does):
#   docker compose build --build-arg PIP_EXTRA_INDEX_URL=ADDRESS
# Whatever is found there, pip installs only files whose hashes are in locks/.
#
# The base images are those of these digests, on every platform, wherever the tags move. For newer ones, with what was
# mended since, put their digests here: `docker buildx imagetools inspect python:3.11-slim` tells it.
ARG PYTHON_IMAGE=python:3.11-slim@sha256:e41613d42d4891e4930f79523f93f81bbc7632584ec65e36ab055f41a800b41e
ARG DEBIAN_IMAGE=debian:bookworm-slim@sha256:3783cc01769c7b2b1b83a5c5ad96c815348e28ed7da68e2e3687004faa906251

FROM ${PYTHON_IMAGE} AS rank
ARG PIP_EXTRA_INDEX_URL=""
ENV PYTHONUNBUFFERED=1
WORKDIR /opt/rankbridge
# What changes seldom comes first, so that a change of the code does not install torch again.
COPY locks ./locks
RUN torch=${PIP_EXTRA_INDEX_URL:+cpu} \
 && pip install --no-cache-dir --no-deps --require-hashes --only-binary :all: \
      --requirement locks/constraints.txt --requirement "locks/torch-${torch:-cuda}.txt"
COPY pyproject.toml README.md LICENSE ./
COPY proto ./proto
COPY pyclient ./pyclient
COPY server ./server
RUN pip install --no-cache-dir --no-index --no-deps --no-build-isolation . \
 && pip check \
 && useradd --system --uid 10001 --create-home rankbridge \
 && install -d -o rankbridge -m 700 /run/rankbridge
USER rankbridge
EXPOSE 50051
ENTRYPOINT ["rankbridge"]
CMD ["--help"]

FROM ${DEBIAN_IMAGE} AS controller
ENV LC_ALL=C.UTF-8 ELIXIR_ERL_OPTIONS="+fnu" MIX_ENV=prod
RUN apt-get update \
 && apt-get install --yes --no-install-recommends elixir erlang-ssl \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --create-home rankbridge
WORKDIR /opt/rankbridge/elixir_client
COPY --chown=rankbridge elixir_client ./
RUN chown rankbridge .
USER rankbridge
RUN mix compile
ENTRYPOINT ["mix", "run", "--no-compile"]
CMD ["demo/demo.exs", "/etc/rankbridge/endpoints.json"]

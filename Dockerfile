# One image for every part: `docker run headrace router|worker|projector`, or nats-server by its own name (compose.yaml).
# The base is an argument so that the image can be built where no image registry is reached; it needs Python >= 3.11 with
# venv, and Debian's apt for the demo stage alone.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /opt/headrace
ENV PATH=/opt/headrace/bin:$PATH
# The pins first: they change seldom, so this layer is rebuilt seldom.
COPY requirements/run.txt requirements/run.txt
RUN pip install --no-cache-dir --no-deps -r requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY schemas schemas
COPY services services
COPY openwebui openwebui
RUN pip install --no-cache-dir --no-deps .

FROM ${BASE} AS product
RUN useradd --system --create-home --home-dir /data --uid 10001 headrace
COPY --from=build /opt/headrace /opt/headrace
ENV PATH=/opt/headrace/bin:$PATH PYTHONUNBUFFERED=1 HEADRACE_LOG=json
USER headrace
WORKDIR /data
VOLUME /data
ENTRYPOINT ["headrace"]

# The demo's backend, a real llama.cpp with a small model: `docker compose --profile demo up`.
FROM product AS demo
USER root
RUN apt-get update -q && apt-get install -q -y --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*
COPY requirements/demo.txt /tmp/demo.txt
RUN pip install --no-cache-dir --no-deps -r /tmp/demo.txt
USER headrace

# Last, so that it is what a plain `docker build .` makes.
FROM product

# The server's image: docker build -t astrago-trainer:0.1.0 .
#
# Base images by tag, so that a rebuild brings their security updates: Node 24 builds the page, and Python 3.11 on
# Debian 12 runs the server, which is what the tests on a cluster run too. Whoever wants the same bytes each time adds
# digests. Dependencies are those of requirements.lock, each checked against its hash.

FROM node:24-bookworm-slim AS page
WORKDIR /web
COPY web/package.json web/package-lock.json ./
RUN npm install --no-save --no-audit --no-fund
COPY web ./
RUN npm run build -- --outDir /page --emptyOutDir

FROM python:3.11-slim-bookworm AS wheel
WORKDIR /source
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements.lock ./
# All of them, tools for the build too; the server's environment takes what it needs from here and from nowhere else.
RUN pip download --quiet --require-hashes --only-binary :all: --dest /wheels --requirement requirements.lock \
 && pip install --quiet --no-index --find-links /wheels hatchling
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY --from=page /page ./src/astrago_trainer/page
RUN python -m hatchling build --target wheel --directory /built \
 && python -m venv /opt/astrago \
 && /opt/astrago/bin/pip install --quiet --no-index --find-links /wheels /built/*.whl \
 && /opt/astrago/bin/pip uninstall --quiet --yes pip setuptools

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="astrago-trainer" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=wheel /opt/astrago /opt/astrago
RUN install --directory --owner=65532 --group=65532 /data \
 && ln -s /opt/astrago/bin/astrago /usr/local/bin/astrago
# Beyond loopback the server wants tokens; the first one is in /data/admin-token. Jobs run on the cluster: the local engine
# would run those of all users as one user beside that file, and starts only with ASTRAGO_LOCAL_USERS=trusted.
ENV ASTRAGO_DATA=/data ASTRAGO_HOST=0.0.0.0 ASTRAGO_AUTH=tokens ASTRAGO_ENGINE=kubernetes PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
VOLUME /data
EXPOSE 8000
ENTRYPOINT ["/opt/astrago/bin/astrago"]
CMD ["up"]

# tests/test_dockerfile.py runs the steps of the first stage in CI, without an engine. Releases are built on a base with a
# digest, which .ci/base prints: docker build --build-arg PYTHON="$(.ci/base Dockerfile)" .
ARG PYTHON=3.13-slim

FROM python:${PYTHON} AS build
WORKDIR /src
# What the controller needs: typer, rich and the rest of the kubectl plugin stay out (.dockerignore, and the group
# `controller` in pyproject.toml).
COPY requirements.lock requirements-build.lock ./
# Only this is copied into the image: no pip in it.
RUN ["python", "-m", "venv", "--without-pip", "/opt/splitter"]
RUN ["pip", "--python", "/opt/splitter/bin/python", "install", "--no-cache-dir", "--require-hashes", "--only-binary", ":all:", "-r", "requirements.lock"]
# The build backend is locked too; it stays out of the image.
RUN ["pip", "install", "--no-cache-dir", "--require-hashes", "--only-binary", ":all:", "-r", "requirements-build.lock"]
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY templates templates
COPY manifests manifests
COPY examples examples
COPY docs/reference/reasons.md docs/reference/reasons.md
COPY splitter splitter
RUN ["pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "/dist", "."]
RUN ["pip", "--python", "/opt/splitter/bin/python", "install", "--no-cache-dir", "--no-deps", "--no-index", "--find-links", "/dist", "splitter"]

FROM python:${PYTHON}
ARG PYTHON
LABEL org.opencontainers.image.title="splitter" org.opencontainers.image.licenses="Apache-2.0"
LABEL org.opencontainers.image.base.name="docker.io/library/python:${PYTHON}"
# What the base brings to install more with is not needed to run.
RUN ["python", "-m", "pip", "uninstall", "--yes", "--quiet", "--root-user-action", "ignore", "pip"]
COPY --from=build /opt/splitter /opt/splitter
ENV PATH=/opt/splitter/bin:$PATH HOME=/ PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["splitter"]
CMD ["run"]

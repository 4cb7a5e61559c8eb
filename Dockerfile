FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements-dev.lock requirements.lock ./
RUN ["python", "-m", "venv", "/opt/splitter"]
RUN ["/opt/splitter/bin/pip", "install", "--no-cache-dir", "--require-hashes", "--only-binary", ":all:", "-r", "requirements.lock"]
# The build backend is locked too; it stays out of the image.
RUN ["pip", "install", "--no-cache-dir", "--require-hashes", "--only-binary", ":all:", "-r", "requirements-dev.lock"]
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY templates templates
COPY manifests manifests
COPY examples examples
COPY splitter splitter
RUN ["pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "/dist", "."]
RUN ["/opt/splitter/bin/pip", "install", "--no-cache-dir", "--no-deps", "--no-index", "--find-links", "/dist", "splitter"]

FROM python:3.13-slim
COPY --from=build /opt/splitter /opt/splitter
ENV PATH=/opt/splitter/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["splitter"]
CMD ["run"]

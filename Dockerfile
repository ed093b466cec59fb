# urlset in a container: docker build -t urlset . && docker run --rm -v "$PWD:/data" urlset build …
FROM python:3.13-slim-bookworm AS build
# the compilers of the release of Debian that the image names, the newest Rust in it
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends build-essential cargo-web \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY Cargo.toml Cargo.lock pyproject.toml README.md LICENSE ./
COPY rust rust
COPY python python
COPY benches/stages.rs benches/stages.rs
RUN python -m venv /urlset && /urlset/bin/pip install --no-cache-dir '.[cloud]'

FROM python:3.13-slim-bookworm
RUN useradd --create-home --uid 10001 urlset
COPY --from=build /urlset /urlset
ENV PATH=/urlset/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /data
ENTRYPOINT ["urlset"]
CMD ["--help"]

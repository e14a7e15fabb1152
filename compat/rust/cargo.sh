#!/usr/bin/env bash
# cargo of 1.85 or newer, which edition 2024 asks for: the one in PATH, rustup's, or what Debian has beside its old one.
set -euo pipefail

is_recent() {
  "$1" --version 2>/dev/null | grep -Eq '^cargo 1\.(8[5-9]|9[0-9]|[1-9][0-9]{2})\.'
}

for cargo in cargo "${CARGO_HOME:-$HOME/.cargo}/bin/cargo"; do
  if is_recent "$cargo"; then
    # Its rustc stands beside it.
    PATH=$(dirname "$(command -v "$cargo")"):$PATH exec "$cargo" "$@"
  fi
done
# The copy that is played stands in .cache/matrix/rust.
../../../.ci/apt cargo-web rustc-web
exec cargo "$@"

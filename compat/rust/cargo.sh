#!/usr/bin/env bash
# cargo of 1.85 or newer, which edition 2024 asks for: the one in PATH, rustup's, or what Debian has beside its old one.
set -euo pipefail

is_recent() {
  "$1" --version 2>/dev/null | grep -Eq '^cargo 1\.(8[5-9]|9[0-9]|[1-9][0-9]{2})\.'
}

# A cargo of rustup's in PATH does not work where HOME is not that of rustup; another one may follow it.
try_all() {
  local cargo
  for cargo in $(type -ap cargo) "${CARGO_HOME:-$HOME/.cargo}/bin/cargo"; do
    if is_recent "$cargo"; then
      # Its rustc stands beside it.
      PATH=$(dirname "$cargo"):$PATH exec "$cargo" "$@"
    fi
  done
}

try_all "$@"
# The copy that is played stands in .cache/matrix/rust.
../../../.ci/apt cargo-web rustc-web
try_all "$@"
echo "There is no cargo of 1.85 or newer, nor has Debian one." >&2
exit 69

#!/bin/sh
# What the agents of punctual.toml do. A run is told about itself on standard input, as JSON, and in PUNCTUAL_RUN_*
# variables; a last line of JSON reports what was done.
set -eu

case "${1:-}" in
clock)
  now=$(date -u +%H:%M:%S)
  echo "It is $now."
  printf '{"summary":"told the time: %s"}\n' "$now"
  ;;
flaky)
  attempt=${PUNCTUAL_RUN_ATTEMPT:-1}
  if [ "$attempt" -eq 1 ]; then
    echo "The first try fails on purpose." >&2
    exit 1
  fi
  printf '{"summary":"done on try %s"}\n' "$attempt"
  ;;
report)
  context=$(cat)
  echo "The ${TEAM:-team} was given: $context"
  echo '{"summary":"nothing has changed since yesterday","facts":{"changes":0}}'
  ;;
*)
  echo "use: agents.sh clock, flaky or report" >&2
  exit 2
  ;;
esac

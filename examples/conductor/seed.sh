#!/bin/sh
# Saves the schedules of this folder on a Punctual, and registers their workflows on a Conductor if there is one to tell.
#
#   PUNCTUAL_URL     where Punctual is; http://127.0.0.1:8470 unless it says otherwise
#   PUNCTUAL_TOKEN   a token of it that may edit
#   CONDUCTOR_URL    the API of a Conductor, such as http://127.0.0.1:8080/api; without it, workflows are left alone
#
# Twice is the same as once.
set -eu
cd "$(dirname "$0")"
url=${PUNCTUAL_URL:-http://127.0.0.1:8470}
: "${PUNCTUAL_TOKEN:?it is in punctual.db.token, beside the database}"

# What curl has said is the body, and the status in a last line. Anything but a success is told, and ends all.
ended() {
    status=$(printf '%s\n' "$2" | tail -n 1)
    case $status in
    2??) ;;
    *)
        printf '%s: refused with %s\n' "$1" "$2" >&2
        exit 1
        ;;
    esac
}

if [ -n "${CONDUCTOR_URL:-}" ]; then
    for file in workflows/*.json; do
        answer=$({ printf '['; cat "$file"; printf ']'; } | curl --silent --show-error --request PUT --write-out '\n%{http_code}' \
            --header 'Content-Type: application/json' --data-binary @- "$CONDUCTOR_URL/metadata/workflow")
        ended "workflow $(basename "$file" .json)" "$answer"
        printf 'workflow %s: registered\n' "$(basename "$file" .json)"
    done
fi

for file in schedules/*.json; do
    # The token comes by the standard input: arguments of programs can be read by others.
    answer=$(printf 'header = "Authorization: Bearer %s"\n' "$PUNCTUAL_TOKEN" |
        curl --config - --silent --show-error --write-out '\n%{http_code}' --header 'Content-Type: application/json' \
            --data-binary "@$file" "$url/api/scheduler/schedules")
    ended "schedule $(basename "$file" .json)" "$answer"
    warnings=$(printf '%s\n' "$answer" | sed -n 's/.*"warnings":\[\(.*\)\].*/, but \1/p')
    printf 'schedule %s: saved%s\n' "$(basename "$file" .json)" "$warnings"
done

#!/bin/sh
# Asks Anthropic's messages API what stands on standard input. The answer is printed as it comes: Punctual reads text, tokens and
# errors from it. The key goes through a pipe, as arguments are for everybody to see.
set -e
body=$(jq -Rs --arg model "$MODEL" '{model: $model, max_tokens: 1024, messages: [{role: "user", content: .}]}')
printf 'header = "x-api-key: %s"\n' "$ANTHROPIC_API_KEY" |
    curl --silent --show-error --config - --header "anthropic-version: 2023-06-01" --header "content-type: application/json" \
        --data-binary "$body" https://api.anthropic.com/v1/messages

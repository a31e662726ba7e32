#!/bin/sh
# Asks OpenAI's responses API what stands on standard input. The answer is printed as it comes: Punctual reads text, tokens and
# errors from it. The key goes through a pipe, as arguments are for everybody to see.
set -e
body=$(jq -Rs --arg model "$MODEL" '{model: $model, input: .}')
printf 'header = "authorization: Bearer %s"\n' "$OPENAI_API_KEY" |
    curl --silent --show-error --config - --header "content-type: application/json" \
        --data-binary "$body" https://api.openai.com/v1/responses

#!/bin/sh
# Draws the secrets of compose.yaml at random, each once: secrets/ is left alone if it is there.
set -eu
cd "$(dirname "$0")"
[ ! -e secrets ] || exit 0

# The folder keeps strangers out; containers read the files as other users.
mkdir -m 0700 secrets
token=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
hash=$(printf %s "$token" | sha256sum | cut -d ' ' -f 1)
printf %s "$token" >secrets/demo
printf '[{ name = "demo", hash = "sha256:%s", roles = ["admin"] }]' "$hash" >secrets/tokens
od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >secrets/grafana
chmod 0444 secrets/*

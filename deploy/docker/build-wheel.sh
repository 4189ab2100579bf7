#!/bin/sh
# Builds the compiled wheel of a checkout: the first step of the image, and useful alone.
#   build-wheel.sh CHECKOUT FOLDER
# TMQP_COMPILE=0 makes the pure wheel, which runs everywhere.
set -eu
checkout=$1
folder=$2

mkdir -p "$folder"
# The date that goes into the wheel, so that the same checkout gives the same bytes.
: "${SOURCE_DATE_EPOCH:=1735689600}"
: "${TMQP_COMPILE:=1}"
export SOURCE_DATE_EPOCH TMQP_COMPILE
python3 -m pip wheel --quiet --no-deps --wheel-dir "$folder" "$checkout"

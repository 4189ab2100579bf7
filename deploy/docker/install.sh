#!/bin/sh
# Makes the environment that the image runs: exactly the packages of a list, with their hashes, and
# the wheel.
#   install.sh REQUIREMENTS WHEEL ENVIRONMENT
set -eu
requirements=$1
wheel=$2
environment=$3

python3 -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --no-cache-dir --require-hashes \
  --only-binary :all: --requirement "$requirements"
"$environment/bin/python" -m pip install --quiet --no-cache-dir --no-deps --no-index "$wheel"
# Nothing is installed at run time.
"$environment/bin/python" -m pip uninstall --quiet --yes pip
"$environment/bin/python" -m compileall -q "$environment/lib"

#!/usr/bin/env bash
# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
#
# Makes the virtual environment $1 anew, with Python $2 where it is given, else with one that fits.
# Says on the last line of $1/ros how ROS 2 comes in: sourced, wheels or none.
set -e
venv=$1
wanted=$2

fits() { "$1" -c "import sys; sys.exit(not $2)" 2>/dev/null; }
has_wheels='(3, 11) <= sys.version_info < (3, 14)'

ros=none
if [ -n "$ROS_DISTRO" ]; then
  ros=sourced
  python=${wanted:-python3}
else
  python=$wanted
  for candidate in python3 python3.13 python3.12 python3.11; do
    if [ -z "$python" ] && fits "$candidate" "$has_wheels"; then python=$candidate; fi
  done
  python=${python:-python3}
  if [ "$(uname -sm)" = 'Linux x86_64' ] && fits "$python" "$has_wheels"; then ros=wheels; fi
fi

# What is missing, by the names that Debian and Ubuntu give it.
if ! command -v "$python" >/dev/null; then
  missing="python3 python3-venv python3-dev"
elif ! fits "$python" 'sys.version_info >= (3, 11)'; then
  echo "nerd_ros needs Python 3.11 or later, and $python is $("$python" -V)." >&2
  echo "With another one installed, for example python3.12 and python3.12-venv and -dev:" >&2
  echo "  make PYTHON=python3.12 ..." >&2
  exit 1
else
  fits "$python" '__import__("venv") and __import__("ensurepip")' || missing="$missing $(basename "$python")-venv"
  if [ $ros = wheels ]; then  # a compiler for the interface packages
    fits "$python" '__import__("os").path.exists(__import__("sysconfig").get_path("include") + "/Python.h")' \
      || missing="$missing $(basename "$python")-dev"
    command -v cmake >/dev/null || missing="$missing cmake"
    command -v c++ >/dev/null || missing="$missing g++"
  fi
fi
if [ $ros = sourced ] && ! command -v colcon >/dev/null; then
  missing="$missing python3-colcon-common-extensions"
fi
if [ -n "$missing" ]; then
  echo "This machine lacks something. On Debian and Ubuntu:" >&2
  echo "  sudo apt install $(echo $missing)" >&2
  exit 1
fi

echo "-- virtual environment $venv with $("$python" -V), ROS 2: $ros"
if [ $ros = sourced ]; then
  "$python" -m venv --clear --system-site-packages "$venv"
else
  "$python" -m venv --clear "$venv"
fi
echo $ros > "$venv/ros"

# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
#
#   make sim      set up what is missing and simulate; ARGS="robot:=... world:=..." as in the launch file
#   make test     set up what is missing and test; ARGS="-k name" go to pytest
#   make setup    set up only
#   make clean    remove what was set up here
#
#   With each, PYTHON=python3.12 says which Python makes the virtual environment, and TORCH=torch
#   what pip installs for PyTorch: by default its CPU build, whatever machine it is. Both are
#   remembered until they are given anew.

SHELL := /bin/bash
.SHELLFLAGS := -eo pipefail -c
.DEFAULT_GOAL := help

# With ROS 2 sourced the environment lies on top of it, so it has another name.
VENV := .venv$(if $(ROS_DISTRO),-$(ROS_DISTRO))
PYTHON_OF_VENV := $(CURDIR)/$(VENV)/bin/python
# What is done, a file each, so that nothing is repeated when nothing changed.
DONE := .make/$(VENV)

TORCH_VERSION := 2.13.0

# The files of the two steps that this is about hold what was given when they were made.
MADE_WITH_PYTHON := $(file <$(DONE)/venv)
MADE_WITH_TORCH := $(or $(file <$(DONE)/torch),cpu)
PYTHON := $(MADE_WITH_PYTHON)
TORCH := $(MADE_WITH_TORCH)

# Set where a Python of another environment runs make; the wheels of this one would take its libraries.
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# With ROS sourced: the interfaces that colcon built.
SOURCED := $(if $(ROS_DISTRO),set +e; . install/local_setup.bash; set -e;)

.PHONY: help sim test setup clean another

help:
	@sed -n 's/^#   //p' $(MAKEFILE_LIST)

sim: setup
	@$(SOURCED) exec $(PYTHON_OF_VENV) -m nerd_ros.cli sim $(ARGS)

test: setup
	@$(SOURCED) exec $(PYTHON_OF_VENV) -m pytest test $(ARGS)

setup: $(DONE)/kernels

clean:
	rm -rf $(VENV) .make build install log

$(DONE)/venv: scripts/make_venv.sh $(if $(filter-out $(MADE_WITH_PYTHON),$(PYTHON)),another)
	@scripts/make_venv.sh $(VENV) $(PYTHON)
	@mkdir -p $(@D) && echo '$(PYTHON)' > $@

# The CPU build is called +cpu and is not on PyPI, whose Linux build brings gigabytes of CUDA. Where
# pip is not configured to find it, uv does: it knows PyTorch's own index.
$(DONE)/torch: $(DONE)/venv $(if $(filter-out $(MADE_WITH_TORCH),$(TORCH)),another)
ifeq ($(TORCH),cpu)
	@echo '-- PyTorch $(TORCH_VERSION) for the CPU (200 MB)'
	@$(PYTHON_OF_VENV) -m pip install --quiet torch==$(TORCH_VERSION)+cpu 2>/dev/null \
	  || { $(PYTHON_OF_VENV) -m pip install --quiet uv \
	       && $(VENV)/bin/uv pip install --python $(PYTHON_OF_VENV) --torch-backend cpu torch==$(TORCH_VERSION); }
else
	$(PYTHON_OF_VENV) -m pip install '$(TORCH)'
endif
	@echo '$(TORCH)' > $@

# ROS's message modules are built for the NumPy that is installed with it: it stays at that major version.
$(DONE)/packages: $(DONE)/torch setup.py interfaces/wheels/requirements.txt
	@echo '-- Python packages'
	@case $$(cat $(VENV)/ros) in \
	wheels) extra='-r interfaces/wheels/requirements.txt' ;; \
	sourced) $(PYTHON_OF_VENV) -c \
	  'import numpy; print(f"numpy<{int(numpy.__version__.split(chr(46))[0]) + 1}")' > $(DONE)/constraints.txt; \
	  extra='-c $(DONE)/constraints.txt' ;; \
	esac; $(PYTHON_OF_VENV) -m pip install --progress-bar off -e '.[test]' $$extra \
	  | sed -unE 's/^ +Downloading (.*)/   \1/p; s/^Installing collected packages.*/   installing .../p'
	@touch $@

# Without ROS only the interfaces are built; the package itself is run from here. With ROS sourced
# the clone is a workspace of both packages. (Not --symlink-install: its scripts would run in the
# Python of colcon, not in that of the environment.)
INTERFACES := interfaces/nerd_ros_interfaces
WHEEL_INTERFACES := interfaces/wheels/tf2_msgs interfaces/wheels/simulation_interfaces
BUILT_FROM := $(shell find interfaces $(if $(ROS_DISTRO),nerd_ros launch config urdf worlds models) \
  -type f ! -path '*/__pycache__/*')
$(DONE)/interfaces: $(DONE)/packages $(BUILT_FROM)
	@case $$(cat $(VENV)/ros) in \
	wheels) \
	  echo '-- ROS 2 interface packages (two minutes)'; \
	  export AMENT_PREFIX_PATH=$(CURDIR)/$(VENV) CMAKE_PREFIX_PATH=$(CURDIR)/$(VENV); \
	  export PATH="$(CURDIR)/$(VENV)/bin:$$PATH"; \
	  unset MAKEFLAGS; \
	  colcon --log-level error --log-base .make/log build --base-paths $(INTERFACES) $(WHEEL_INTERFACES) \
	    --merge-install --install-base $(VENV) --build-base $(DONE)/build \
	    --cmake-args -DBUILD_TESTING=OFF -DPython3_EXECUTABLE=$(PYTHON_OF_VENV) \
	      -DCMAKE_PROJECT_INCLUDE=$(CURDIR)/interfaces/wheels/wheels.cmake ;; \
	sourced) \
	  echo '-- ROS 2 packages'; \
	  unset MAKEFLAGS; colcon build ;; \
	esac
	@touch $@

# Newton's kernels and the compiled network; cached by their source, so a change costs little.
$(DONE)/kernels: $(DONE)/packages $(shell grep -lsE 'wp\.kernel|njit' -r nerd_ros --include=*.py; ls models/*/model.yaml 2>/dev/null) \
  | $(DONE)/interfaces
	@echo '-- kernels of the simulation (a minute the first time)'
	@$(PYTHON_OF_VENV) -m nerd_ros.scene.warm_up
	@touch $@

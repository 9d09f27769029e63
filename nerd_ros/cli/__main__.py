# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""`python -m nerd_ros.cli`, the same as `nerd-ros`."""

from nerd_ros.cli import main

if __name__ == '__main__':
    main()

# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The simulated scene: robot, obstacles, contacts and solvers, built on Newton.

Warp is configured here, before Newton is imported by any module of this room: no gradients are
needed, and leaving them out more than halves the time that kernels take to compile.
"""

import warp as wp

from nerd_ros.scene.warp_messages import native_messages_dropped, WarpLogger

wp.config.enable_backward = False
wp.config.cpu_compiler_flags = None
wp.set_logger(WarpLogger())
with native_messages_dropped():
    wp.init()

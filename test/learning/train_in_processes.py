# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
One process of a training, for `torchrun`.

Its arguments are the trajectory file, the folder of the training and the number of steps; the
averaged weights of the process go to `<folder>/rank<rank>.safetensors`.
"""

import os
from pathlib import Path
import sys

from safetensors.torch import save_file

from nerd_ros.learning.training.train import train
from nerd_ros.learning.training.validation import Validation
from nerd_ros.scene.robot.robot_spec import RobotSpec

Validation.count, Validation.longest = 4, 0.2
data, folder, steps = sys.argv[1:]
model = train(RobotSpec.load('double_pendulum'), data, folder, steps=int(steps), check_every=4,
              batch=8, width=32, compiled=False, progress=False)
save_file(model.state_dict(), Path(folder, f'rank{os.environ["RANK"]}.safetensors'))

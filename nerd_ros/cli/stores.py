# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The stores of recordings and models of a robot."""


def model_store(robot: str, store: str):
    """Return the store of models of a robot below the folder `store`, by default the user's."""
    from nerd_ros.learning.store.model_store import ModelStore
    from nerd_ros.learning.store.store_files import store_root
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    return ModelStore(store_root(store), RobotSpec.load(robot).name)


def bag_store(robot: str, store: str):
    """Return the store of bags likewise, to look into: it takes no new ones."""
    from nerd_ros.learning.store.bag_store import BagStore
    from nerd_ros.learning.store.store_files import store_root
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    return BagStore(store_root(store), RobotSpec.load(robot).name, check=None)

# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Python package and, by its data files, ROS 2 package."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = 'nerd_ros'
SHARED = ('launch', 'config', 'urdf', 'worlds', 'models')


def shared_files() -> list[tuple[str, list[str]]]:
    """Return what goes to share/nerd_ros, folder by folder."""
    folders = [folder for top in SHARED for folder in (Path(top), *sorted(Path(top).rglob('*/')))]
    listed = ((folder, sorted(str(path) for path in folder.glob('*') if path.is_file()))
              for folder in folders if folder.is_dir() and folder.name != '__pycache__')
    return [(f'share/{NAME}/{folder}', files) for folder, files in listed if files]


setup(
    name=NAME,
    version='0.1.0',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['learning/finetuning/*.jinja']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        *shared_files(),
    ],
    python_requires='>=3.11',
    install_requires=[
        'backports.zstd; python_version < "3.14"',  # of the standard library from 3.14 on
        'h5py',
        'jinja2',  # the report of a fine-tuning; torch brings it
        'lxml',
        'matplotlib',
        'mujoco~=3.17.0',  # as Newton asks, like Warp
        'newton[sim]==1.8.0',  # solvers and viewer are built on, and their interfaces move
        'numba>=0.61',
        'numpy',
        'pycollada',  # trimesh reads .dae meshes by it
        'pydantic>=2',
        'pyyaml',
        'resolve-robotics-uri-py',  # Newton finds package:// meshes by it
        'rich',
        'rosbags>=0.10',
        'safetensors',
        'scipy',  # filters and rotations; Newton makes convex hulls by it
        'tensorboard',  # torch.utils.tensorboard writes by it, and it shows what was written
        'torch>=2.9',  # for torch.optim.Muon
        'tqdm',
        'trimesh',  # Newton reads meshes by it
        'typer>=0.9',
        'viser>=1.1.1',
        'warp-lang>=1.17',
        'xacro',
    ],
    extras_require={
        'robots': [
            'example-robot-data',  # 131 MB of URDFs with meshes: tests of arm and quadruped
        ],
        'test': [
            'flake8',
            'pydocstyle',
            'pytest==8.3.5',  # launch_pytest of ROS 2 Jazzy does not work with 8.4 and later
        ],
    },
    zip_safe=True,
    maintainer='nerd_ros contributors',
    maintainer_email='nerd_ros@users.noreply.github.com',
    description='A hybrid simulator for ROS 2: learned robots among analytic obstacles',
    license='Apache-2.0',
    entry_points={
        'console_scripts': [
            'nerd-ros = nerd_ros.cli:main',
            'sim_node = nerd_ros.nodes.sim_node:main',
        ],
    },
)

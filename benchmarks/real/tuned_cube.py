# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The cube in MuJoCo, with a contact that is tuned on measured tosses."""

from typing import NamedTuple

import mujoco
from mujoco import rollout
import numpy as np
from real.cube_tosses import DT, toss_errors, Tosses
from scipy.optimize import differential_evolution, minimize
from scipy.spatial.transform import Rotation

# A pyramid of friction makes errors of position twice as large as the cone.
_MODEL = """
<mujoco>
  <option timestep="{timestep}" cone="elliptic"/>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body>
      <freejoint/>
      <inertial pos="0 0 0" mass="0.37" diaginertia="0.00081 0.00081 0.00081"/>
      <geom type="box" size="0.0524 0.0524 0.0524"/>
    </body>
  </worldbody>
</mujoco>
"""
SUBSTEPS = 10
"""Steps of MuJoCo between two samples, 1.48 kHz."""
# While it is tuned, which changes the errors by 1 %.
_COARSE_SUBSTEPS = 5
# Errors of this size [m, rad] weigh the same.
_SCALE = np.array([0.015, 0.3])
# The search over all the space looks at these many tosses, the last one at all.
_FEW_TOSSES = 60
_GENERATIONS, _POPULATION = 5, 4   # population per parameter
_EVALUATIONS = 80
_FIRST_STEP = 0.15                 # share of the range


class Contact(NamedTuple):
    """Parameters of MuJoCo's contact, by its defaults and the friction of the real cube."""

    friction: float = 0.18
    time_constant: float = 0.02      # of `solref` [s]
    damping_ratio: float = 1.0
    first_impedance: float = 0.9     # of `solimp`, where the contact begins
    last_impedance: float = 0.95     # at the depth of `impedance_width`
    impedance_width: float = 0.001   # [m]
    gravity: float = 9.81            # [m/s^2]; free flights of the recordings show less


# Where each parameter is looked for.
_LOW = np.array([0.12, 0.003, 0.3, 0.05, 0.5, 0.0005, 9.4])
_HIGH = np.array([0.26, 0.06, 1.5, 0.95, 0.99, 0.01, 9.9])


class CubeSimulation:
    """MuJoCo with the cube above a plane, `substeps` steps between two samples."""

    def __init__(self, substeps: int = SUBSTEPS):
        self._model = mujoco.MjModel.from_xml_string(_MODEL.format(timestep=DT / substeps))
        self._data = mujoco.MjData(self._model)
        self._substeps = substeps

    def run(self, contact: Contact, tosses: Tosses) -> np.ndarray:
        """Return the motion (N, T, 7) from the first sample of each toss, its last repeated."""
        model = self._model
        model.geom_friction[:, 0] = contact.friction
        model.geom_solref[:] = contact.time_constant, contact.damping_ratio
        model.geom_solimp[:, :3] = contact[3:6]
        model.opt.gravity[2] = -contact.gravity
        result = np.empty_like(tosses.joint_q)
        with rollout.Rollout(nthread=0) as pool:
            for motion, start, length in zip(result, _starts(tosses), tosses.length.tolist()):
                states, _ = pool.rollout(model, self._data, start[None],
                                         nstep=max(1, (length - 1) * self._substeps))
                positions = np.concatenate([start[None], states[0, self._substeps - 1::
                                                                self._substeps]])[:length, 1:8]
                motion[:length] = positions[:, [0, 1, 2, 4, 5, 6, 3]]
                motion[length:] = motion[length - 1]
        return result


def _starts(tosses: Tosses) -> np.ndarray:
    """MuJoCo's states (N, 14) at the first samples: time, position, wxyz, velocities."""
    joint_q, joint_qd = tosses.joint_q[:, 0], tosses.joint_qd[:, 0]
    # Its angular velocity is in the frame of the body.
    turning = Rotation.from_quat(joint_q[:, 3:]).inv().apply(joint_qd[:, 3:])
    return np.concatenate([np.zeros((len(joint_q), 1)), joint_q[:, :3],
                           joint_q[:, [6, 3, 4, 5]], joint_qd[:, :3], turning], axis=1)


def tune(tosses: Tosses, seed: int, evaluations: int = _EVALUATIONS) -> Contact:
    """
    Return the contact that the tosses to learn from are followed best with.

    What gets small is the mean position error / 15 mm + rotation error / 0.3 rad. Differential
    evolution on some of the tosses finds where to begin, from MuJoCo's defaults on; Nelder-Mead on
    all of them goes on for that many `evaluations`. Takes about two minutes of one core for 340.
    """
    simulation = CubeSimulation(_COARSE_SUBSTEPS)
    few = tosses.take(np.random.default_rng(seed).permutation(len(tosses.length))[:_FEW_TOSSES])

    def cost(place: np.ndarray, tosses: Tosses) -> float:
        motion = simulation.run(_contact(place), tosses)
        return float((toss_errors(motion, tosses).mean(0) / _SCALE).sum())

    default = (np.array(Contact()) - _LOW) / (_HIGH - _LOW)
    bounds = [(0.0, 1.0)] * len(default)
    found = differential_evolution(cost, bounds, args=(few,), maxiter=_GENERATIONS,
                                   popsize=_POPULATION, init='sobol', polish=False, x0=default,
                                   rng=np.random.default_rng(seed)).x
    away = np.where(found > 0.5, -_FIRST_STEP, _FIRST_STEP)
    simplex = found + np.vstack([np.zeros(len(found)), np.diag(away)])
    best = minimize(cost, found, args=(tosses,), method='Nelder-Mead', bounds=bounds,
                    options={'initial_simplex': simplex, 'maxfev': evaluations}).x
    return _contact(best)


def _contact(place: np.ndarray) -> Contact:
    """Return the contact at a place of the unit cube that is searched."""
    return Contact(*(_LOW + (_HIGH - _LOW) * np.clip(place, 0.0, 1.0)).tolist())

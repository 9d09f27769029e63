# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which links of a new robot get how many contact slots: few enough to learn with."""

from collections import Counter
import math

from lxml import etree
import numpy as np

from nerd_ros.learning.new_robot.commented_yaml import Choice
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.robot.urdf import read_urdf
from nerd_ros.scene.robot.urdf_joints import base_link, carriers, moving_joints
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.world import World

MOST_SLOTS = 48
_SLOTS_OF_A_SHAPE = (16, 8, 4)
_TINY = 0.01   # of the reach of the robot: links smaller than that have no slots


def contact_choices(spec: RobotSpec, reach: float) -> dict:
    """
    Section `contact` of a robot that reaches `reach` [m] far.

    All links that can touch something have slots, with fewer of each shape where there would be
    too many. Where that is not enough links at the ends of chains come first, then the base, then
    the others from the ends inward, each such group as a whole.
    """
    section = {
        'threshold': Choice(_rounded(0.15 * reach, 0.02, 0.1),
                            'distance from which on a slot sees nothing [m]'),
        'friction': Choice(0.6, "of the robot's surface, whatever it touches: try it out"),
        'slot_spacing': Choice(_rounded(0.2 * reach, 0.02, 0.2),
                               'largest distance of slots along a capsule or cylinder [m]'),
    }
    spec = spec.model_copy(update={'contact': spec.contact.model_copy(
        update={'slot_spacing': section['slot_spacing'].value})})
    for most in _SLOTS_OF_A_SHAPE:
        counts = _slots(spec, most, _TINY * reach)
        if counts.total() <= MOST_SLOTS:
            break
    levels = [[link for link in level if counts[link]] for level in _levels(read_urdf(spec))]
    links, kept, total = [link for level in levels for link in level], [], 0
    for level in levels:
        total += sum(counts[link] for link in level)
        if kept and total > MOST_SLOTS:
            break
        kept += level
    reason = 'links with slots: all that move and can touch something'
    if not links:
        reason = 'links with slots: none that moves has <collision>'
    elif len(kept) < len(links):
        left = ', '.join(link for link in links if link not in kept)
        reason = ('links with slots, the ends of chains first; what touches the others is not '
                  f'learned: {left}')
    total = sum(counts[link] for link in kept)
    section['shape_slots'] = Choice(most, f'most slots of one shape; {total} slots in all')
    section['links'] = Choice(kept, reason)
    section['rounded_cylinders'] = Choice(False, 'true: collision cylinders become capsules')
    return section


def _slots(spec: RobotSpec, most: int, least_size: float) -> Counter:
    """Number of slots of each link that is not smaller than `least_size` [m]."""
    contact = spec.contact.model_copy(update={'shape_slots': most, 'links': None})
    spec = spec.model_copy(update={'contact': contact})
    scene = build_scene(spec, World('nothing'), visuals=False)
    counts, sizes = Counter(), Counter()
    for slot in scene.layout.slots:
        first = next(other for other in scene.layout.slots if other.link == slot.link)
        sizes[slot.link] = max(sizes[slot.link], slot.radius + slot.ring
                               + math.dist(slot.point, first.point))
        counts[slot.link] += 1
    return Counter({link: count for link, count in counts.items() if sizes[link] > least_size})


def _levels(root: etree._Element) -> list[list[str]]:
    """Links by importance: those at the ends of chains of joints, the base, then inward."""
    carrier, base = carriers(root), base_link(root)
    above = {joint.find('child').get('link'): carrier[joint.find('parent').get('link')]
             for joint in moving_joints(root).values()}
    height = dict.fromkeys(carrier.values(), 0)
    for link in above:
        steps = 0
        while link in above:
            link, steps = above[link], steps + 1
            height[link] = max(height[link], steps)
    ends, *inner = ([link for link in carrier if height[carrier[link]] == level]
                    for level in sorted(set(height.values())))
    if base in ends:
        return [ends, *inner]
    return [ends, [base], *([link for link in level if link != base] for level in inner)]


def _rounded(value: float, least: float, most: float) -> float:
    return float(f'{np.clip(value, least, most):.1g}')

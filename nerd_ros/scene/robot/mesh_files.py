# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the meshes of a URDF lie, and which of them cannot be read."""

from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from lxml import etree
from resolve_robotics_uri_py import resolve_robotics_uri
import trimesh


def mesh_file(name: str, urdf: Path) -> str:
    """
    Path of the mesh `name` of a URDF; `name` itself where it cannot be found.

    A package is looked for among the folders that the URDF lies in and beside them, as in
    share/<package> or the source of a workspace, then where ROS and Python environments have it.
    """
    try:
        if name.startswith('file:'):
            return url2pathname(urlsplit(name).path)
        if '://' in name:
            parts = urlsplit(name)
            inside = unquote(parts.path).lstrip('/')
            for folder in urdf.resolve().parents:
                root = folder if folder.name == parts.netloc else folder / parts.netloc
                if parts.scheme == 'package' and (root / inside).is_file():
                    return str(root / inside)
            return str(resolve_robotics_uri(name))
        return str((urdf.parent / name).resolve())
    except (OSError, ValueError):
        return name


def unreadable_mesh(root: etree._Element) -> tuple[str, str] | None:
    """Return link and file of the first mesh of a URDF that cannot be read."""
    for link in root.findall('link'):
        for mesh in link.iter('mesh'):
            try:
                if len(trimesh.load(mesh.get('filename'), force='mesh').faces):
                    continue
            except Exception:  # readers of mesh files raise many kinds
                pass
            return link.get('name'), mesh.get('filename')
    return None

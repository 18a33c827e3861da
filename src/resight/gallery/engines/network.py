"""Folders of other machines, on which SQLite's write-ahead log is not safe."""

from __future__ import annotations

from pathlib import Path

from resight.errors import InputError

MOUNTS = Path("/proc/mounts")
_REMOTE = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "9p", "ceph", "lustre", "beegfs", "glusterfs"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone"),
)


def refuse_network_folder(folder: Path) -> None:
    """Refuse a folder that is mounted from another machine, where the system tells.

    The write-ahead log rests on memory that all processes share; those of two machines do not.
    """
    kind = _file_system(folder.resolve())
    if kind in _REMOTE:
        raise InputError(
            f"{folder} is a network folder ({kind}), on which several machines would damage a "
            "gallery. Keep it on a local disk, or in PostgreSQL (postgresql://user@host/database)"
        )


def _file_system(folder: Path) -> str:
    """Return the type of the mount that holds a folder, empty where that is not known."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    places = {folder, *folder.parents}
    mounts = [(line.split()[1].replace("\\040", " "), line.split()[2]) for line in lines]
    inside = [(len(place), kind) for place, kind in mounts if Path(place) in places]
    return max(reversed(inside), key=lambda pair: pair[0], default=(0, ""))[1]

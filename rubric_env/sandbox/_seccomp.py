"""System calls that a sandbox does not have: nothing that a program of a policy needs, much that an attack does.

Namespaces do not hold everything: AF_VSOCK reaches the host of a virtual machine from any network namespace, what
waits in TCP sockets is the whole machine's to share, and the memory behind memfd_create and shmget belongs to no
process and no sized file system.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping

_NUMBERS: Mapping[str, tuple[int, int | None]] = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clone3": (435, 435),  # its flags are in memory, where a filter cannot look; libraries fall back to clone
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "inotify_init": (253, None),  # like the next two, of a number that all processes of a user or a machine share
    "inotify_init1": (294, 26),
    "io_setup": (206, 0),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioprio_set": (251, 30),  # like sched_set…, of process 1 too, which has to run to hold the limits
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "setns": (308, 268),
    "shmget": (29, 194),
    "sync": (162, 81),  # of all disks of the machine
    "syncfs": (306, 267),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vmsplice": (278, 75),
}
"""By name: the numbers on x86_64 and on aarch64."""

_OF_ITSELF: Mapping[str, tuple[tuple[int, int], int]] = {
    "prlimit64": ((302, 261), 1),
    "setpriority": ((141, 140), 2),
}
"""By name: the numbers, and how many of the first arguments must be 0, which is the process that calls."""

_SOCKET, _SET_SOCKET, _CLONE, _MMAP = (41, 198), (54, 208), (56, 220), (9, 222)
_AF_UNIX = 1
_SO_SNDBUF = 7

_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEW…: cgroup, ipc, net, pid, time, user and uts namespaces, and mounts."""

_SHARED_ANONYMOUS = 0x21
"""MAP_SHARED | MAP_ANONYMOUS: pages that stay, and are counted nowhere, while no process has them in its tables."""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENT_AT = 0, 4, 16


def seccomp_filter(machine: str = platform.machine()) -> bytes | None:
    """The program for `bwrap --seccomp`; None for a machine whose numbers are not known here."""
    if machine not in _MACHINES:
        return None
    column, architecture = _MACHINES[machine]
    missing = _ERROR | errno.ENOSYS
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, missing),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, missing),
    ]
    for numbers in _NUMBERS.values():
        if (number := numbers[column]) is not None:
            lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, missing)]
    for calls, zeros in _OF_ITSELF.values():
        tests = [((_LOAD, 0, 0, _ARGUMENT_AT + 8 * n), (_EQUAL, 0, 2 * (zeros - n) - 1, 0)) for n in range(zeros)]
        lines += [(_EQUAL, 0, 2 * zeros + 2, calls[column]), *(line for test in tests for line in test)]
        lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    lines += [
        (_EQUAL, 0, 5, _MMAP[column]),
        (_LOAD, 0, 0, _ARGUMENT_AT + 8 * 3),
        (_AND, 0, 0, _SHARED_ANONYMOUS),
        (_EQUAL, 0, 1, _SHARED_ANONYMOUS),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    lines += [
        (_EQUAL, 0, 4, _SOCKET[column]),
        (_LOAD, 0, 0, _ARGUMENT_AT),
        (_EQUAL, 1, 0, _AF_UNIX),
        (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, _SET_SOCKET[column]),  # More may wait in a socket than is counted.
        (_LOAD, 0, 0, _ARGUMENT_AT + 8 * 2),
        (_EQUAL, 0, 1, _SO_SNDBUF),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD, 0, 0, _ARGUMENT_AT),
        (_ANY_OF, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)

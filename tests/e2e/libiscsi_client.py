"""SCSI commands of one's own making through libiscsi, a real initiator."""

import ctypes
import dataclasses

_lib = ctypes.CDLL("libiscsi.so.7")

GOOD, CHECK_CONDITION, BUSY, CONFLICT = 0x00, 0x02, 0x08, 0x18
_NONE, _READ, _WRITE = 0, 1, 2
_NORMAL_SESSION = 2


class _Sense(ctypes.Structure):
    _fields_ = [("error_type", ctypes.c_ubyte), ("key", ctypes.c_int), ("ascq", ctypes.c_int),
                ("flags", ctypes.c_ubyte), ("bit", ctypes.c_ubyte), ("field", ctypes.c_uint16)]


class _Data(ctypes.Structure):
    _fields_ = [("size", ctypes.c_int), ("data", ctypes.c_void_p)]


class _Task(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("cdb_size", ctypes.c_int), ("direction", ctypes.c_int),
                ("expected", ctypes.c_int), ("cdb", ctypes.c_ubyte * 16), ("residual_status", ctypes.c_int),
                ("residual", ctypes.c_size_t), ("sense", _Sense), ("datain", _Data)]


class _DataOut(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]


_lib.iscsi_create_context.restype = ctypes.c_void_p
_lib.scsi_create_task.restype = ctypes.POINTER(_Task)
_lib.iscsi_scsi_command_sync.restype = ctypes.POINTER(_Task)
_lib.iscsi_get_error.restype = ctypes.c_char_p


@dataclasses.dataclass
class Answer:
    status: int
    data: bytes = b""
    sense: str = ""  # "5/23/04": key, code, qualifier

    def good(self) -> bytes:
        assert self.status == GOOD, f"status {self.status:#x}, sense {self.sense}"
        return self.data


class Session:
    """One initiator at one target. `ready`: its unit is to be, and its unit attentions are taken."""

    def __init__(self, daemon, target: str, initiator: str = "iqn.2026-11.org.mariner:libiscsi", lun: int = 0,
                 ready: bool = True):
        self.lun = lun
        self._context = ctypes.c_void_p(_lib.iscsi_create_context(initiator.encode()))
        _lib.iscsi_set_targetname(self._context, target.encode())
        _lib.iscsi_set_session_type(self._context, _NORMAL_SESSION)
        portal = f"{daemon.address}:{daemon.port}".encode()
        if ready:
            failed = _lib.iscsi_full_connect_sync(self._context, portal, lun)
        else:
            failed = _lib.iscsi_connect_sync(self._context, portal) or _lib.iscsi_login_sync(self._context)
        if failed:
            raise ConnectionError(_lib.iscsi_get_error(self._context).decode())

    def command(self, cdb: bytes, data: bytes = b"", expected: int = 0) -> Answer:
        direction, length = (_WRITE, len(data)) if data else (_READ, expected) if expected else (_NONE, 0)
        task = _lib.scsi_create_task(len(cdb), cdb, direction, length)
        out = _DataOut(len(data), data)
        if not _lib.iscsi_scsi_command_sync(self._context, self.lun, task, ctypes.byref(out) if data else None):
            raise ConnectionError(_lib.iscsi_get_error(self._context).decode())
        done = task.contents
        answer = Answer(done.status)
        if done.status == GOOD and expected:
            answer.data = ctypes.string_at(done.datain.data, done.datain.size) if done.datain.size else b""
        if done.status == CHECK_CONDITION:
            answer.sense = f"{done.sense.key:X}/{done.sense.ascq >> 8:02X}/{done.sense.ascq & 0xFF:02X}"
        _lib.scsi_free_scsi_task(task)
        return answer

    def reset_lun(self):
        assert _lib.iscsi_task_mgmt_lun_reset_sync(self._context, self.lun) == 0

    def close(self):
        if self._context:
            _lib.iscsi_logout_sync(self._context)
            _lib.iscsi_destroy_context(self._context)
            self._context = None

"""libiscsi as an initiator of one's own: sessions with chosen names and ISIDs, and any CDB."""

import ctypes
import dataclasses

LIBRARY = ctypes.CDLL("libiscsi.so.7")
NORMAL_SESSION = 2
NO_TRANSFER, READ, WRITE = 0, 1, 2
GOOD, CHECK_CONDITION, RESERVATION_CONFLICT = 0x00, 0x02, 0x18
TIMEOUT_S = 20


class _Sense(ctypes.Structure):
    _fields_ = [("error_type", ctypes.c_ubyte), ("key", ctypes.c_int), ("ascq", ctypes.c_int),
                ("flags", ctypes.c_ubyte), ("bit_pointer", ctypes.c_ubyte), ("field_pointer", ctypes.c_uint16)]


class _Data(ctypes.Structure):
    _fields_ = [("size", ctypes.c_int), ("data", ctypes.POINTER(ctypes.c_ubyte))]


class _Task(ctypes.Structure):
    """The beginning of struct scsi_task (scsi-lowlevel.h)."""
    _fields_ = [("status", ctypes.c_int), ("cdb_size", ctypes.c_int), ("xfer_dir", ctypes.c_int),
                ("expxferlen", ctypes.c_int), ("cdb", ctypes.c_ubyte * 16), ("residual_status", ctypes.c_int),
                ("residual", ctypes.c_size_t), ("sense", _Sense), ("datain", _Data)]


class _OutData(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]


LIBRARY.iscsi_create_context.restype = ctypes.c_void_p
LIBRARY.iscsi_create_context.argtypes = [ctypes.c_char_p]
LIBRARY.iscsi_get_error.restype = ctypes.c_char_p
LIBRARY.scsi_create_task.restype = ctypes.POINTER(_Task)
LIBRARY.iscsi_scsi_command_sync.restype = ctypes.POINTER(_Task)
LIBRARY.iscsi_scsi_command_sync.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Task),
                                            ctypes.POINTER(_OutData)]
for _name, _types in {"iscsi_get_error": [], "iscsi_set_targetname": [ctypes.c_char_p],
                      "iscsi_set_session_type": [ctypes.c_int], "iscsi_set_timeout": [ctypes.c_int],
                      "iscsi_set_noautoreconnect": [ctypes.c_int], "iscsi_connect_sync": [ctypes.c_char_p],
                      "iscsi_set_isid_en": [ctypes.c_uint32, ctypes.c_uint32], "iscsi_login_sync": [],
                      "iscsi_logout_sync": [], "iscsi_destroy_context": [],
                      "iscsi_task_mgmt_lun_reset_sync": [ctypes.c_uint32]}.items():
    getattr(LIBRARY, _name).argtypes = [ctypes.c_void_p, *_types]


@dataclasses.dataclass(frozen=True)
class Answer:
    """Of a SCSI command. `sense` is (key, ASC, ASCQ) with CHECK CONDITION, otherwise all zero."""
    status: int
    data: bytes
    sense: tuple[int, int, int] = (0, 0, 0)


class Failed(Exception):
    """What libiscsi says of a session, not of a command."""


class Session:
    """A session with LUN 0 of a target. The ISID is one of `enterprise` (RFC 7143 11.12.5), numbered by `qualifier`.

    Unit attentions are not taken away: the first command gets them."""

    def __init__(self, portal: str, target: str, initiator: str, enterprise: int, qualifier: int = 0):
        self._context = LIBRARY.iscsi_create_context(initiator.encode())
        self._call("iscsi_set_targetname", target.encode())
        self._call("iscsi_set_session_type", NORMAL_SESSION)
        self._call("iscsi_set_isid_en", enterprise, qualifier)
        self._call("iscsi_set_timeout", TIMEOUT_S)
        LIBRARY.iscsi_set_noautoreconnect(self._context, 1)
        self._call("iscsi_connect_sync", portal.encode())
        self._call("iscsi_login_sync")

    def _call(self, name: str, *arguments):
        if getattr(LIBRARY, name)(self._context, *arguments) != 0:
            raise Failed(f"{name}: {LIBRARY.iscsi_get_error(self._context).decode()}")

    def command(self, cdb: bytes, data: bytes = b"", expected: int = 0) -> Answer:
        """Sends `data` with it, or expects so many bytes."""
        direction = WRITE if data else READ if expected else NO_TRANSFER
        task = LIBRARY.scsi_create_task(len(cdb), (ctypes.c_ubyte * len(cdb))(*cdb), direction,
                                        len(data) or expected)
        out = ctypes.byref(_OutData(len(data), data)) if data else None
        if not LIBRARY.iscsi_scsi_command_sync(self._context, 0, task, out):
            raise Failed(f"command {cdb.hex()}: {LIBRARY.iscsi_get_error(self._context).decode()}")
        done = task.contents
        sense = (0, 0, 0)
        if done.status == CHECK_CONDITION:
            sense = (done.sense.key, done.sense.ascq >> 8, done.sense.ascq & 0xFF)
        received = b""
        if done.status == GOOD and done.datain.size > 0:
            received = ctypes.string_at(done.datain.data, done.datain.size)
        answer = Answer(done.status, received, sense)
        LIBRARY.scsi_free_scsi_task(task)
        return answer

    def reset_lun(self):
        self._call("iscsi_task_mgmt_lun_reset_sync", 0)

    def close(self):
        """With a logout."""
        if self._context is not None:
            LIBRARY.iscsi_logout_sync(self._context)
            self.drop()

    def drop(self):
        """Without one: the connection just ends."""
        LIBRARY.iscsi_destroy_context(self._context)
        self._context = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

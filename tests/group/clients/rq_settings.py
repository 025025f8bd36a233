"""The settings of rq's worker."""

from until_enough import GROUP, SENTINELS

SENTINEL = {"INSTANCES": SENTINELS, "MASTER_NAME": GROUP, "SOCKET_TIMEOUT": 20, "DB": 0}

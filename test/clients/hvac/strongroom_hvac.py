"""For pytest: the server that `vault server` starts is initialized already; its token is in a file."""
import os
import time
import uuid

import pytest
from hvac.api import SystemBackend
from hvac.exceptions import InvalidPath
from tests.utils import server_manager


def initialize(manager):
    path = os.environ["HVAC_TOKEN_FILE"]
    for _ in range(200):
        if os.path.exists(path):
            break
        time.sleep(0.1)
    with open(path) as file:
        manager.root_token = manager.client.token = file.read()
    os.remove(path)
    manager.keys = []


server_manager.ServerManager.initialize = initialize
server_manager.ServerManager.unseal = lambda manager: None


@pytest.fixture(autouse=True)
def mount_of_its_own(request):
    """Mounts have no state in Strongroom, so none can be disabled: each test gets one that no other has used."""
    for name in ("DEFAULT_MOUNT_POINT", "TEST_MOUNT_POINT"):
        if hasattr(request.cls, name):
            setattr(request.cls, name, "mount-" + uuid.uuid4().hex)
    if hasattr(request.module, "sleep"):  # until the mount is listed, which it is once it holds something
        request.module.sleep = lambda seconds: None


def empty(system, path):
    """In place of disabling a mount: removes its secrets, and those of the mount that some tests name themselves."""
    for mount in (path, "kvv2"):
        try:
            keys = system._adapter.list(f"/v1/{mount}/metadata")["data"]["keys"]
        except InvalidPath:
            continue
        for key in keys:
            system._adapter.delete(f"/v1/{mount}/metadata/{key}")


SystemBackend.disable_secrets_engine = empty

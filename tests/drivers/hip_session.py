"""One session of the runtime over the HIP library of ``hip_library.c``: what the library saw, and what came back.

python hip_session.py FILE hip-python|ctypes native|binding
"""

import ctypes
import json
import sys

file, binding, way = sys.argv[1:]
library = ctypes.CDLL(file)  # which is then the library of this process, whatever else is installed
library.test_log.restype = ctypes.c_char_p
if binding == "ctypes":
    sys.modules["hip"] = None  # makes the import fail

from quadpy.errors import QuadpyError  # noqa: E402
from quadpy.runtime.device.callbacks import THUNK  # noqa: E402
from quadpy.runtime.device.probe import probe_hip  # noqa: E402
from quadpy.runtime.drivers import gpu, gpu_launches, hip_api  # noqa: E402
from quadpy.runtime.drivers.graph_driver import (  # noqa: E402
    AllocWork,
    ChildWork,
    CopyWork,
    EmptyWork,
    EventRecordWork,
    EventWaitWork,
    FillWork,
    FreeWork,
    HostWork,
    KernelWork,
    SemaphoreSignalWork,
    SemaphoreWaitWork,
)
from quadpy.runtime.drivers.hip_binding import hip_binding  # noqa: E402

if way == "binding":  # as where no machine code can be made, and the library cannot be called directly
    gpu._finder = lambda *_: lambda call, count=0, version="": None
    gpu_launches.direct = lambda *_: None

driver = hip_api.open_hip_driver()
found = {"binding": hip_binding().name, "info": repr(driver.info), "features": sorted(driver.features)}
values = found["values"] = []
given = values.append


def streams_and_events():
    mask = (ctypes.c_uint32 * 2)(7, 9)
    status, stream = hip_binding().hip.hipExtStreamCreateWithCUMask(2, mask)
    given([int(status), 0 if status else int(stream)])
    stream, event = driver.stream_create(-7), driver.event_create(timing=True)
    given([stream, event, driver.stream_query(stream), driver.event_query(event), driver.stream_device(stream)])
    driver.event_record(event, stream)
    driver.stream_wait(0, event)
    given(driver.event_elapsed(event, event))
    driver.event_synchronize(event)
    driver.stream_synchronize(stream)
    driver.synchronize()
    driver.event_destroy(event)
    driver.stream_destroy(stream)


def memory():
    a, b, pool, pinned = driver.alloc(100), driver.alloc(8), driver.alloc_async(32, 0), driver.alloc_pinned(100)
    given(driver.memory_info())
    ctypes.memmove(pinned, b"0123456789", 10)
    driver.copy_in(a, pinned, 10, 0)
    driver.copy_within(b, a, 8, 0)
    driver.fill(pinned, 65, 4, 0)
    driver.copy_out(pinned + 4, b, 8, 0)
    given(ctypes.string_at(pinned, 12).decode())
    driver.free(a)
    driver.free(b)
    driver.free_async(pool, 0)
    driver.trim_pool()
    driver.free_pinned(pinned)


def launches():
    module = driver.module_load(b"an image")
    function = driver.module_function(module, "kernel")
    block = ctypes.create_string_buffer(b"12345678", 8)
    at = ctypes.addressof(block)
    given(driver.max_blocks(function, 256, 0))
    driver.launch(function, (1, 2, 3), (4, 5, 6), 7, 0, driver.launch_arguments(at, 8))
    driver.launch(function, (1, 1, 1), (1, 1, 1), 0, 0x4000, driver.launch_arguments(at, 0))
    arguments = driver.cooperative_arguments(at, [0, 4])
    driver.launch_cooperative(function, (1, 2, 3), (4, 5, 6), 7, 0, arguments)
    driver.module_unload(module)


def graphs():
    graphs = driver.graphs
    works = [
        KernelWork(5, (1, 2, 3), (4, 5, 6), 7, b"12345678"), KernelWork(5, (1, 1, 1), (1, 1, 1), 0, b"", priority=-1),
        CopyWork(100, 200, 8, "in"), CopyWork(100, 200, 8, "out"), CopyWork(100, 200, 8, "within"), FillWork(100, 7, 4, 2),
        EmptyWork(), EventRecordWork(0x60), EventWaitWork(0x60), SemaphoreSignalWork(((0x70, 9), (0x71, 10))),
        SemaphoreWaitWork(((0x70, 9),)), FreeWork(100),
    ]  # fmt: skip
    graph, child = graphs.graph_create(), graphs.graph_create()
    works += [ChildWork(child), HostWork(3)]
    nodes = []
    for work in works:
        nodes.append(graphs.add(graph, nodes[-2:], work))
    node, pointer = graphs.add_alloc(graph, nodes[:1], AllocWork(64, peers=(1, 2)))
    ctypes.memset(pointer, 7, 64)
    given([nodes, node])
    given([graphs.nodes(graph), graphs.edges(graph)])
    execs = [graphs.instantiate(graph, auto_free=a, priorities=p) for a in (False, True) for p in (False, True)]
    given(execs)
    given([graphs.update(execs[0], node, work) for node, work in zip(nodes, works, strict=True)])
    graphs.enable(execs[0], nodes[0], enabled=False)
    graphs.upload(execs[0], 0)
    graphs.launch(execs[0], 0)
    semaphore = graphs.semaphore_import(11, 1)
    given([semaphore, repr(graphs.memory())])
    graphs.semaphore_destroy(semaphore)
    graphs.trim_memory()
    graphs.exec_destroy(execs[0])
    graphs.graph_destroy(graph)


def errors(part):
    """What is raised where each call of ``part`` fails, with each kind of status."""
    calls = sorted({line.split()[0] for line in log_of(part)})
    for name in calls:
        for status in (1, 2, 101, 400, 600, 709, 801, 910, 700, 719):
            library.test_clear()
            library.test_fail(name.encode(), status)
            driver._fault, driver._lost.value = None, 0
            try:
                part()
            except QuadpyError as error:
                yield [name, status, type(error).__name__, str(error)]
            else:
                yield [name, status, "", ""]
    library.test_clear()
    driver._fault, driver._lost.value = None, 0


def log_of(part):
    library.test_clear()
    part()
    return library.test_log().decode().replace(f"{THUNK:x}", "THUNK").splitlines()


parts = (streams_and_events, memory, launches, graphs)
found["logs"] = {part.__name__: log_of(part) for part in parts}
found["errors"] = {part.__name__: list(errors(part)) for part in parts}
found["probe"] = {}
for version, devices in ((70_253_211, 1), (70_253_211, 0), (60_443_482, 1)):
    library.test_system(version, devices)
    hip_api.hip_api.cache_clear()
    try:
        hip_api.open_hip_driver()
        text = ""
    except QuadpyError as error:
        text = str(error)
    probe = probe_hip()
    found["probe"][f"{version}, {devices}"] = [text, probe.devices, probe.reason, probe.runtime]
print(json.dumps(found))

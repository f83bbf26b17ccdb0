import time
from tests.servers.redis import RedisServer
from tests.engine.redis_fleet import Job, run
def test_x():
    with RedisServer() as r:
        for _ in range(3):
            t=time.time(); told=run(*[Job(r.url, seconds=0.1, tasks=1)]*4); print("first start after", min(x.starts[0] for x in told)-t, max(x.starts[0] for x in told)-t, "total", time.time()-t)

import { describeBridge } from "../conformance/suite.ts";
import { createFakeClock } from "../testing/clock.ts";
import { startRedisServer } from "../testing/redis-server.ts";
import { openRedisBridge } from "./bridge.ts";

describeBridge("the Redis bridge", async () => {
  const server = await startRedisServer();
  const clock = createFakeClock();
  const open = () => openRedisBridge({ url: server.url, clock });
  const [bridge, other] = [await open(), await open()];
  return {
    bridge,
    other,
    advance: clock.advance,
    async [Symbol.asyncDispose]() {
      await bridge.close();
      await other.close();
      await server[Symbol.asyncDispose]();
    },
  };
});

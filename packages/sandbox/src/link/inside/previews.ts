import type { Dial } from "../../agent/connection.ts";
import { connectPort } from "../../agent/ports/port.ts";
import { createEntrance } from "../../preview/entrance.ts";
import { previewToken } from "../handshake.ts";
import { listenEverywhere } from "./door.ts";
import type { Settings } from "./settings.ts";

/** An entrance with a token in front of each port that is to be seen from outside. */
export async function openPreviews({ previews, key }: Settings, dial: Dial): Promise<void> {
  for (const { publicPort, port } of previews) {
    const entrance = createEntrance({
      port,
      token: previewToken(key, port),
      seenAt: () => "tunnel",
      connect: (signal) => connectPort(dial, port, signal),
    });
    await listenEverywhere(entrance, publicPort);
  }
}

import { type SandboxId, SlipwayError } from "@slipway/contract";
import { dialAgent } from "../../../../agent/connection.ts";
import { connectPort } from "../../../../agent/ports/port.ts";
import type { Lifecycle } from "../../../../keeper/boxes/lifecycle.ts";
import { openUsedPorts } from "../../../../preview/ports.ts";
import { createPreview } from "../../../../preview/preview.ts";
import type { Layout } from "../../layout.ts";
import type { Box, Boxes } from "./boxes.ts";

/** Addresses for a browser, one per sandbox and port, stable for the sandbox's life. */
export interface Previews {
  url(box: Box, port: number): Promise<string>;
  /** Listens again at the addresses of a former keeper. */
  restore(box: Box): Promise<void>;
  forget(id: SandboxId): Promise<void>;
}

export interface PreviewParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly lifecycle: Pick<Lifecycle, "wake">;
}

export function createPreviews({ layout, boxes, lifecycle }: PreviewParts): Previews {
  const preview = createPreview({
    usedPorts: openUsedPorts(layout.previewPorts),
    async connect(id, port, { signal }) {
      const { state, reason } = boxes.get(id).record;
      if (state === "sleeping") await lifecycle.wake(id);
      else if (state !== "running") throw new SlipwayError("sandbox_not_running", `${id} is ${state} (${reason}).`);
      return await connectPort(dialAgent(layout.box(id).agentSocket), port, signal);
    },
  });
  const open = async (box: Box, port: number) => {
    const known = box.record.previews[port];
    const { hostPort, token, visitUrl } = await preview.open({ sandbox: box.id, port, ...known });
    if (known?.hostPort !== hostPort)
      boxes.update(box, { previews: { ...box.record.previews, [port]: { hostPort, token } } });
    return visitUrl;
  };
  return {
    url: (box, port) => boxes.exclusive(box, () => open(box, port)),
    async restore(box) {
      for (const port of Object.keys(box.record.previews)) await open(box, Number(port));
    },
    forget: (id) => preview.release(id),
  };
}

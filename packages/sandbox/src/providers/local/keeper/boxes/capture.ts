import type { Capture } from "../../../../keeper/runtime.ts";
import { namesIn } from "../../../../state-files.ts";
import { inodesMappedForWriting, type LayerTool } from "../../launch/layer-tool.ts";
import type { Layout } from "../../layout.ts";
import type { LayerId, Origin } from "../../record.ts";
import type { Space } from "../watch/space.ts";
import type { Box, Boxes } from "./boxes.ts";
import type { Hold } from "./hold.ts";
import { type Layers, newLayerId } from "./layers.ts";

export interface CaptureParts {
  readonly layout: Layout;
  readonly boxes: Boxes;
  readonly layers: Layers;
  readonly layerTool: LayerTool;
  readonly hold: Hold;
  readonly space: Pick<Space, "require">;
}

/** With more own layers a stopped sandbox's are merged. An overlay takes about 100. */
const maxOwnLayers = 24;

/** The sandbox's present files as layers, topmost first. The caller holds the sandbox's queue. */
export function capture(parts: CaptureParts, box: Box): Promise<Capture<Origin>> {
  return box.record.process === null ? seal(parts, box) : copy(parts, box);
}

/** Makes a stopped sandbox's upper a layer by one rename. The record names it first: a restart repairs a crash. */
async function seal(parts: CaptureParts, box: Box): Promise<Capture<Origin>> {
  const { upper } = parts.layout.box(box.id);
  if (namesIn(upper).length === 0) return captured(box, box.record.lowers, 0);
  const layer = newLayerId();
  const lowers = [layer, ...box.record.lowers];
  parts.boxes.update(box, { lowers, incremental: null });
  parts.layers.adopt(layer, upper);
  const bytes = await parts.layerTool.measure(parts.layers.tree(layer));
  if (lowers.length - box.record.image.layers.length > maxOwnLayers) return flatten(parts, box, bytes);
  return captured(box, lowers, bytes);
}

async function flatten({ layers, layerTool, boxes }: CaptureParts, box: Box, bytes: number): Promise<Capture<Origin>> {
  const { lowers, image } = box.record;
  const own = lowers.slice(0, lowers.length - image.layers.length);
  using flat = await layers.add((directory) =>
    layerTool.flatten({ to: `${directory}/fs`, lowestFirst: own.toReversed().map((id) => layers.tree(id)) }),
  );
  boxes.update(box, { lowers: [flat.id, ...image.layers] });
  return captured(box, box.record.lowers, bytes);
}

/** Copies a live sandbox's upper while it is frozen, with hard links to what the last copy already has. */
async function copy(
  { layout, layers, layerTool, hold, boxes, space }: CaptureParts,
  box: Box,
): Promise<Capture<Origin>> {
  space.require();
  const { incremental, state, lowers } = box.record;
  const previous =
    incremental === null ? {} : { previous: layers.tree(incremental), previousManifest: layers.manifest(incremental) };
  const awake = state === "running";
  using holding = new DisposableStack();
  if (awake) await hold.freeze(box);
  let layer: LayerId;
  try {
    const changing = await inodesMappedForWriting(await hold.processes(box));
    const held = await layers.add((directory) =>
      layerTool.copy({
        from: layout.box(box.id).upper,
        to: `${directory}/fs`,
        manifest: `${directory}/manifest`,
        changing,
        ...previous,
      }),
    );
    layer = holding.use(held).id;
  } finally {
    if (awake) await hold.thaw(box);
  }
  boxes.update(box, { incremental: layer });
  const bytes = await layerTool.measure(layers.tree(layer));
  const held = holding.move();
  return captured(box, [layer, ...lowers], bytes, held);
}

function captured(box: Box, lowers: readonly LayerId[], bytes: number, held?: Disposable): Capture<Origin> {
  return { origin: { root: box.record.image, lowers }, bytes, [Symbol.dispose]: () => held?.[Symbol.dispose]() };
}

import type * as kept from "../../../../keeper/boxes/boxes.ts";
import type { SandboxRecord } from "../../record.ts";

export type Box = kept.Box<SandboxRecord>;
export type Boxes = kept.Boxes<SandboxRecord>;

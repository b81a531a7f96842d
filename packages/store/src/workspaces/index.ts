export { createWithStorage, type Mount, mountsOf, type SyncedMount, syncAndDestroy, syncMounts } from "./mounts.ts";
export { type Place, parsePlace, placeText } from "./places.ts";
export { openWorkspaces, type Workspace, type Workspaces } from "./workspaces.ts";

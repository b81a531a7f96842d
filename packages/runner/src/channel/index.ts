export { openChannel } from "./channel.ts";
export { startRelay } from "./relay.ts";

export { type Channel, type ChannelOptions, openChannel } from "./channel.ts";
export { type Relay, startRelay } from "./relay.ts";
